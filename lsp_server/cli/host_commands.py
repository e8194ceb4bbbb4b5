"""`foregram status`, `stop` and `logs`: commands about the host."""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.host.protocol import Status
from engine.host.runtime import RuntimeFolder
from engine.model_names import serves, title_of
from lsp_server.cli.messages import agreed, note, visible
from lsp_server.host.address import HostError, host_address
from lsp_server.host.client import ProbeResult, host_status
from lsp_server.host.daemon import explained, stop_host, version_sentence
from lsp_server.saved import Day, saved_days, today
from lsp_server.settings import Settings
from lsp_server.why import prompt_summary

NO_HOST = 1  # exit status of `foregram status` if it finds no host
STILL_THERE = 1  # exit status of `foregram stop` if the user says no
FOLLOW_S = 0.2  # seconds between reads of the log: a reader notices no delay


def show_status(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what the host is doing; return 1 if there is none."""
    answer = explained(settings, asyncio.run(host_status(settings)))
    if answer.status is None:
        return tell_absence(answer, as_json=arguments.json)
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(answer.status).decode() + "\n")
    else:
        Console().print(table_of(status_rows(answer.status, settings)))
    return 0


def tell_absence(answer: ProbeResult, *, as_json: bool) -> int:
    """Say why there is no host; return the exit status."""
    if as_json:
        shown = {"state": answer.kind, "reason": answer.reason}
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
    else:
        note(answer.reason)
    return NO_HOST


def stop(arguments: argparse.Namespace, settings: Settings) -> int:
    """Stop the local host and say whether there was one; ask first if editors use it."""
    if settings.host_url is None and not arguments.force and not _may_stop(settings):
        return STILL_THERE
    was_there = asyncio.run(stop_host(settings, note))
    sys.stdout.write("stopped\n" if was_there else "No host is running\n")
    return 0


def _may_stop(settings: Settings) -> bool:
    status = asyncio.run(host_status(settings)).status
    if status is None or not status.num_clients:
        return True
    users = f"{_counted(status.num_clients, 'editor')} used this host within the last ten minutes"
    if not sys.stdin.isatty():
        raise HostError(f"{users}; `foregram stop --force` stops it anyway")
    return agreed(f"{users}. Stop it?")


def show_logs(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the end of the local host's log; with `--follow`, also new lines."""
    if settings.host_url is not None:
        raise HostError(f"the log of the host at {settings.host_url} is on that machine")
    folder = RuntimeFolder.open(settings.runtime_folder)
    path = folder.log.path
    begin = path.stat().st_size if path.exists() else 0
    sys.stdout.writelines(f"{visible(line)}\n" for line in folder.log.read(arguments.lines))
    if not begin:
        note("there is no log yet: a host writes it from its start on")
    if arguments.follow:
        _follow(path, begin)
    return 0


def _follow(path: Path, begin: int) -> None:
    path.touch()
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(begin)
        while True:
            if text := file.read():
                sys.stdout.write(visible(text))
                sys.stdout.flush()
            elif path.stat().st_size < file.tell():
                file.seek(0)  # it became too long and was emptied
            else:
                time.sleep(FOLLOW_S)


def status_rows(status: Status, settings: Settings) -> dict[str, str]:
    """Return what a host is doing, and what its suggestions saved here today."""
    other = version_sentence(status, is_remote=settings.host_url is not None)
    return {
        "state": _state(status),
        "model": _model(status, settings),
        "device": f"{status.device}, {status.place}" if status.place else status.device,
        "without": "; ".join(status.lost),
        "address": host_address(settings).endpoint,
        "process": f"{status.pid}, up {timedelta(seconds=int(status.uptime_s))}",
        "version": f"{status.version}, protocol {status.protocol}{other and f'; {other}'}",
        "requests": f"{status.num_running} running, {status.num_waiting} waiting",
        "clients": f"{status.num_clients}, {_counted(status.num_buffers, 'buffer')}",
        "last prompt": prompt_summary(status.last_prompt) if status.last_prompt else "",
        "pool": f"{status.pool_tokens:,} tokens",
        "memory": _memory(status),
        "today": saved_days(settings.cache_folder).get(today(), Day()).sentence,
    }


def table_of(rows: Mapping[str, str]) -> Table:
    """Return a table of the rows that say something."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in rows.items():
        if value:
            table.add_row(name, Text(visible(value)))
    return table


def _memory(status: Status) -> str:
    whole = 1e6 * status.memory_mb
    parts = {"keys and values": status.kv_bytes, "drafts": status.draft_bytes}
    if status.mapped_bytes:  # a host on macOS does not know
        parts = {"mapped weights and programs": status.mapped_bytes, **parts}
    parts["rest"] = max(0, int(whole) - sum(parts.values()))
    told = ", ".join(f"{name} {amount / 1e6:,.0f}" for name, amount in parts.items() if amount)
    return f"{status.memory_mb:,.0f} MB ({told})"


def _state(status: Status) -> str:
    now = None if status.problem else status.progress
    told = status.problem.message if status.problem else now.task if now else ""
    share = f", {now.percentage} %" if now and now.percentage is not None else ""
    return f"{status.state}: {told}{share}" if told else status.state


def _model(status: Status, settings: Settings) -> str:
    requested = status.requested_model
    running = " ".join(filter(None, (status.model or title_of(requested), status.dtype)))
    wanted = settings.model
    if settings.host_url is not None or not (requested and wanted):
        return running
    if serves(wanted, requested, status.model):
        return running
    return f"{running} (the settings name {title_of(wanted)}; `foregram stop` makes room for it)"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
