"""`foregram status`, `stop` and `logs`: what a person asks of the host."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.host.protocol import Status
from engine.host.runtime import RuntimeFolder
from lsp_server.daemon import read_log, stop_host
from lsp_server.host_address import HostError, host_address, host_status
from lsp_server.settings import Settings

NO_HOST = 1
FOLLOW_S = 0.2


def show_status(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what the host is doing; status 1 where there is none."""
    answer = asyncio.run(host_status(settings))
    if arguments.json:
        shown = answer.status or {"state": answer.kind, "reason": answer.reason}
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
    elif answer.status:
        Console().print(_table(answer.status, host_address(settings).place))
    else:
        sys.stderr.write(f"foregram: {answer.reason}\n")
    return 0 if answer.status else NO_HOST


def stop(_arguments: argparse.Namespace, settings: Settings) -> int:
    """Stop the local host and say whether there was one."""
    was_there = asyncio.run(stop_host(settings))
    sys.stdout.write("stopped\n" if was_there else "there was no host to stop\n")
    return 0


def show_logs(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the end of the local host's log and, if asked, what comes after it."""
    if settings.host_url is not None:
        raise HostError(f"the log of the host at {settings.host_url} is where that runs")
    path = RuntimeFolder.open(settings.runtime_folder).log_path
    begin = path.stat().st_size if path.exists() else 0
    sys.stdout.writelines(f"{line}\n" for line in read_log(settings, arguments.lines))
    if arguments.follow:
        for text in _following(path, begin):
            sys.stdout.write(text)
            sys.stdout.flush()
    return 0


def _following(path: Path, begin: int) -> Iterator[str]:
    path.touch()
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(begin)
        while True:
            if text := file.read():
                yield text
            else:
                time.sleep(FOLLOW_S)


def _table(status: Status, place: str) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = {
        "state": _state(status),
        "model": " ".join(filter(None, (status.model, status.dtype))),
        "device": status.device,
        "address": place,
        "process": f"{status.pid}, up {timedelta(seconds=int(status.uptime_s))}",
        "version": f"{status.version}, protocol {status.protocol}",
        "requests": f"{status.num_running} running, {status.num_waiting} waiting",
        "clients": f"{status.num_clients}, {status.num_buffers} buffers",
        "pool": f"{status.pool_tokens:,} tokens",
        "memory": f"{status.memory_mb:,.0f} MB, of it {status.kv_bytes / 2**20:,.0f} MB of KV cache",
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, Text(value))
    return table


def _state(status: Status) -> str:
    if status.problem:
        return f"{status.state}: {status.problem.message}"
    if status.progress and status.progress.total:
        percent = 100 * status.progress.done // status.progress.total
        return f"{status.state}: {status.progress.task}, {percent} %"
    return status.state
