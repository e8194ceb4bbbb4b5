"""`foregram doctor`: all checks in order, as a table for people or a list for programs."""

import argparse
import asyncio
import platform
import sys
import time
from collections.abc import Callable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.errors import ForegramError
from lsp_server.cli.gpu_check import check_gpu
from lsp_server.cli.host_checks import (
    check_backend,
    check_host,
    check_latency,
    check_tls,
    check_token,
)
from lsp_server.cli.machine_checks import (
    check_cache,
    check_kernels,
    check_processor,
    check_repository,
    check_runtime_folder,
    check_torch,
)
from lsp_server.cli.messages import visible
from lsp_server.host.address import HostAddress, HostError, host_address
from lsp_server.host.daemon import ensure_host, explained
from lsp_server.host.failures import boot_s
from lsp_server.host.probe import ProbeResult, probe
from lsp_server.model_choice import Check, check_model, failure
from lsp_server.settings import LoadedSettings, Settings, load_settings

SICK = 1  # exit status where something has failed
POLL_S = 0.2
LOAD_LIMIT_S = 300.0  # for a model that `--start` loads; the first time it is converted
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}
_Examine = Callable[[Settings], Check | None]
_WHERE_A_MODEL_RUNS: dict[str, _Examine] = {  # a remote host has these of its own
    "torch": check_torch,
    "processor": check_processor,
    "device": lambda settings: check_gpu(settings.device),
    "kernels": check_kernels,
    "model": lambda settings: check_model(settings.model),
}
_EVERYWHERE: dict[str, _Examine] = {
    "cache": check_cache,
    "repository": check_repository,
    "runtime folder": check_runtime_folder,
    "token": check_token,
}


def show_doctor(arguments: argparse.Namespace, _settings: Settings) -> int:
    """Check everything, wrong settings too, and print it; status 1 if something failed."""
    if arguments.cards:
        return _show_cards(as_json=arguments.json)
    with Console(stderr=True).status("checking"):
        checks = examine(load_settings(), start=arguments.start)
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(checks).decode() + "\n")
    elif sys.stdout.isatty():
        Console().print(_table(checks))
    else:
        sys.stdout.writelines(map(_line, checks))
    return SICK if any(check.state == "failed" for check in checks) else 0


def _show_cards(*, as_json: bool) -> int:
    try:
        with Console(stderr=True).status("computing"):
            from lsp_server.cli.cards import show_cards
    except (ImportError, OSError) as error:  # OSError: of torch's own libraries
        problem = f"which models fit needs torch, which cannot be loaded: {visible(str(error))}"
        sys.stdout.write("[]\n" if as_json else f"{problem}\n")
        return SICK
    return show_cards(as_json=as_json)


def examine(loaded: LoadedSettings, *, start: bool) -> list[Check]:
    """All checks that apply. A failure that a user can fix is a check, not an exception."""
    settings = loaded.settings
    checks = [Check("python", "ok", f"{platform.python_version()}, {sys.executable}")]
    advice = "correct or remove it; until then only lsp and serve run"
    wrong = [Check("settings", "failed", str(one), advice) for one in loaded.problems]
    checks += wrong or [Check("settings", "ok", "all are known and valid")]
    table = _EVERYWHERE if settings.host_url else _WHERE_A_MODEL_RUNS | _EVERYWHERE
    checks += filter(None, (_safely(name, check, settings) for name, check in table.items()))
    return checks + asyncio.run(examine_host(settings, start=start))


async def examine_host(settings: Settings, *, start: bool) -> list[Check]:
    """The host, and how fast it answers; `start` starts one and waits for its model."""
    try:
        address = (
            await ensure_host(settings, wanted_at=boot_s()) if start else host_address(settings)
        )
        answer = explained(settings, await (_loaded(address) if start else probe(address)))
    except HostError as error:
        return [failure("host", error, "`foregram logs` says more")]
    except (ForegramError, OSError, ValueError) as error:  # ValueError: an impossible host name
        return [failure("host", error)]
    host = check_host(answer, is_remote=settings.host_url is not None)
    checks = [*filter(None, [check_tls(address)]), host]
    if host.state == "ok" and answer.status is not None:
        checks += [check_backend(answer.status)] if answer.status.lost else []
        checks.append(await check_latency(address))
    return checks


async def _loaded(address: HostAddress) -> ProbeResult:
    """The status of a host once it has loaded its model, or has taken too long."""
    deadline = time.monotonic() + LOAD_LIMIT_S
    while True:
        answer = await probe(address)
        is_loading = answer.status is not None and answer.status.state == "loading"
        if not is_loading or time.monotonic() > deadline:
            return answer
        await asyncio.sleep(POLL_S)


def _safely(name: str, check: _Examine, settings: Settings) -> Check | None:
    """What the check finds, or what kept it from finishing."""
    try:
        return check(settings)
    except (ForegramError, OSError, RuntimeError, ValueError) as error:
        return failure(name, error)


def _table(checks: Sequence[Check]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for check in checks:
        what = Text(visible(check.what))
        if check.state != "ok":
            what.append(f"\n{visible(check.advice)}", style="bold")
        table.add_row(Text(check.state, style=_STYLES[check.state]), Text(check.name), what)
    return table


def _line(check: Check) -> str:
    advice = f"; {check.advice}" if check.advice else ""
    return visible(f"{check.state:<8} {check.name}: {check.what}{advice}") + "\n"
