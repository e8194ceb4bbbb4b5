"""`foregram doctor`: all checks in order, as a table for people or a list for programs."""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.errors import ForegramError
from lsp_server.cli.checks import (
    check_cache,
    check_kernels,
    check_processor,
    check_python,
    check_repository,
    check_runtime_folder,
    check_settings,
    check_torch,
)
from lsp_server.cli.gpu_check import CardFit, card_fits, check_gpu
from lsp_server.cli.host_checks import (
    check_backend,
    check_host,
    check_latency,
    check_socket,
    check_tls,
    check_token,
)
from lsp_server.cli.report import visible
from lsp_server.host.address import HostAddress, HostError, host_address
from lsp_server.host.daemon import ensure_host, explained
from lsp_server.host.failures import boot_s
from lsp_server.host.probe import ProbeResult, probe
from lsp_server.model_choice import Check, check_model, failure
from lsp_server.settings import LoadedSettings, Settings, load_settings

SICK = 1
POLL_S = 0.2
LOAD_LIMIT_S = 300.0  # of a model that `--start` loads; the first time it is converted
_CARDS_HEAD = (
    f"    {'model':<5} {'held as':<9} {'weights':>8} {'buffers':>8} {'cache':>8} {'room for':>17}"
    f" {'floor':>9}\n"
)
_CARDS_LEGEND = """\
* model = auto
Q8_0 and Q4_K_M are forms of a model's file, the others values of dtype.
The floor is how long reading takes: the weights, and the keys and values of 2,048 tokens, at the
bandwidth that the card's maker states. No step takes less; `foregram bench gpu` measures how much more.
"""
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}


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
    """Print which models fit which GPUs, and what `auto` takes of them."""
    with Console(stderr=True).status("computing"):
        cards = card_fits()
    if as_json:
        sys.stdout.write(msgspec.json.encode(cards).decode() + "\n")
        return 0 if cards else SICK
    sys.stdout.write(_CARDS_HEAD)
    for card in cards:
        sys.stdout.write("\n".join([card.card, *map(_fit_line, card.fits), ""]))
    sys.stdout.write(_CARDS_LEGEND)
    return 0 if cards else SICK


def _fit_line(fit: CardFit) -> str:
    mark = "*" if fit.is_picked else " "
    sizes = (fit.weights_bytes, fit.working_bytes, fit.cache_bytes)
    parts = " ".join(f"{size / 1e9:5.1f} GB" for size in sizes)
    context = f"{fit.positions:,} tokens"
    return f"  {mark} {fit.model:<5} {fit.form:<9} {parts} {context:>17} {fit.floor_ms:6.1f} ms"


def examine(loaded: LoadedSettings, *, start: bool) -> list[Check]:
    """All checks that apply. A failure that a user can fix is a check, not an exception."""
    settings = loaded.settings
    checks = [check_python(), *check_settings(loaded.problems)]
    if settings.host_url is None:  # a remote host has a torch and a model of its own
        checks += [
            check_torch(),
            check_processor(),
            check_gpu(settings.device),
            *check_kernels(settings.cache_folder),
            _safely("model", lambda: check_model(settings.model)),
        ]
    checks += [
        _safely("cache", lambda: check_cache(settings.cache_folder)),
        _safely("repository", lambda: check_repository(settings)),
        _safely("runtime folder", lambda: check_runtime_folder(settings.runtime_folder)),
        _safely("token", lambda: check_token(settings)),
    ]
    return checks + asyncio.run(_examine_host(settings, start=start))


async def _examine_host(settings: Settings, *, start: bool) -> list[Check]:
    try:
        address = (
            await ensure_host(settings, wanted_at=boot_s()) if start else host_address(settings)
        )
        if (path := address.socket_path) is not None:
            connection = _safely("socket", partial(check_socket, path))
        else:
            connection = _safely("tls", lambda: check_tls(address))
        answer = await (_loaded(address) if start else probe(address))
        answer = explained(settings, answer)
    except HostError as error:
        return [failure("host", error, "`foregram logs` says more")]
    except (ForegramError, OSError, ValueError) as error:  # ValueError: an impossible host name
        return [failure("host", error)]
    checks = [connection, check_host(answer, is_remote=settings.host_url is not None)]
    if checks[-1].state == "ok" and answer.status is not None:
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


def _safely(name: str, check: Callable[[], Check]) -> Check:
    """The check, or what kept it from finishing."""
    try:
        return check()
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
