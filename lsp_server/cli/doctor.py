"""`foregram doctor`: all checks in order, as a table for people or a list for programs."""

import argparse
import asyncio
import platform
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.errors import ForegramError
from engine.installation import install_command
from lsp_server.cli import host_checks, machine_checks
from lsp_server.cli.gpu_check import check_gpu
from lsp_server.cli.messages import visible
from lsp_server.host.address import HostAddress, HostError, host_address
from lsp_server.host.client import ProbeResult, probe
from lsp_server.host.daemon import ensure_host, explained
from lsp_server.host.failures import boot_s
from lsp_server.model_choice import Check, check_model, failure
from lsp_server.settings import LoadedSettings, Settings, load_settings

if TYPE_CHECKING:
    from engine.model.gpu.fit import Fit

SICK = 1  # exit status if a check failed
POLL_S = 0.2  # seconds between status checks of a model that takes seconds or minutes to load
LOAD_LIMIT_S = 300.0  # seconds that `--start` waits for a model, which may be converted first
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}
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


def _check_model(settings: Settings) -> Check:
    try:
        from lsp_server.cli.setup import check_choice

        return check_choice(settings)  # it loads torch where there may be a GPU
    except (ImportError, OSError):  # torch's own check says more
        return check_model(settings.model)


_Examine = Callable[[Settings], Check | None]
_WHERE_A_MODEL_RUNS: dict[str, _Examine] = {  # skipped where a remote host runs the model
    "torch": machine_checks.check_torch,
    "processor": machine_checks.check_processor,
    "device": lambda settings: check_gpu(settings.device),
    "kernels": machine_checks.check_kernels,
    "model": _check_model,
}
_EVERYWHERE: dict[str, _Examine] = {
    "cache": machine_checks.check_cache,
    "repository": machine_checks.check_repository,
    "runtime folder": machine_checks.check_runtime_folder,
    "token": host_checks.check_token,
}


def show_doctor(arguments: argparse.Namespace, _settings: Settings) -> int:
    """Check everything, invalid settings included, and print it; return 1 if a check failed."""
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
            from engine.model.gpu.fit import PLANNED_CARDS, fits, pick
    except (ImportError, OSError) as error:  # OSError: from torch's own libraries
        problem = (
            f"which models fit needs PyTorch, which cannot be loaded: {visible(str(error))}; "
            f"to install it: {install_command('gpu')}"
        )
        sys.stdout.write("[]\n" if as_json else f"{problem}\n")
        return SICK
    cards = {
        f"{card.memory_gib:.0f} GB, as an {card.name}": (pick(card), [*fits(card)])
        for card in PLANNED_CARDS
    }
    if as_json:
        shown = [{"card": card, "picked": one[0], "fits": one[1]} for card, one in cards.items()]
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
        return 0
    sys.stdout.write(_CARDS_HEAD)
    for card, (best, found) in cards.items():
        sys.stdout.write(f"{card}\n")
        sys.stdout.writelines(f"  {'*' if one == best else ' '} {_fit(one)}\n" for one in found)
    sys.stdout.write(_CARDS_LEGEND)
    return 0


def _fit(fit: "Fit") -> str:
    plan = fit.plan
    sizes = " ".join(f"{one / 1e9:5.1f} GB" for one in (plan.weights, plan.working, plan.cache))
    context = f"{plan.positions:,} tokens"
    return f"{fit.model:<5} {fit.form:<9} {sizes} {context:>17} {fit.floor_ms:6.1f} ms"


def examine(loaded: LoadedSettings, *, start: bool) -> list[Check]:
    """Return all checks that apply. A failure that a user can fix is a check, not an exception."""
    settings = loaded.settings
    checks = [Check("python", "ok", f"{platform.python_version()}, {sys.executable}")]
    advice = "correct or remove it; until then only lsp and serve run"
    wrong = [Check("settings", "failed", str(one), advice) for one in loaded.problems]
    checks += wrong or [Check("settings", "ok", "all are known and valid")]
    table = _EVERYWHERE if settings.host_url else _WHERE_A_MODEL_RUNS | _EVERYWHERE
    checks += filter(None, (_safely(name, check, settings) for name, check in table.items()))
    return checks + asyncio.run(examine_host(settings, start=start))


async def examine_host(settings: Settings, *, start: bool) -> list[Check]:
    """Check the host and how fast it answers; `start` starts one and waits for its model."""
    try:
        address = (
            await ensure_host(settings, wanted_at=boot_s()) if start else host_address(settings)
        )
        answer = explained(settings, await (_loaded(address) if start else probe(address)))
    except HostError as error:
        return [failure("host", error, "`foregram logs` says more")]
    except (ForegramError, OSError, ValueError) as error:  # ValueError: an impossible host name
        return [failure("host", error)]
    host = host_checks.check_host(answer, is_remote=settings.host_url is not None)
    checks = [*filter(None, [host_checks.check_tls(address)]), host]
    return [*checks, await host_checks.check_latency(address)] if host.state == "ok" else checks


async def _loaded(address: HostAddress) -> ProbeResult:
    deadline = time.monotonic() + LOAD_LIMIT_S
    while True:
        answer = await probe(address)
        is_loading = answer.status is not None and answer.status.state == "loading"
        if not is_loading or time.monotonic() > deadline:
            return answer
        await asyncio.sleep(POLL_S)


def _safely(name: str, check: _Examine, settings: Settings) -> Check | None:
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
