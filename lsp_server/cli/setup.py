"""`foregram setup`: which model helps most on this machine, what it costs, and its installation."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterator

import msgspec

from engine.cpu_choice import Installed, known_machine, measured_machine
from engine.errors import CacheError, ConfigurationError
from engine.model.cpu.fit import CPU_MODELS, CpuMachine, CpuModel
from engine.model.cpu.threads import default_threads
from engine.model.device import DeviceChoice
from engine.model_names import AUTO_MODEL, kind_of
from lsp_server.cli.messages import agreed, note, visible
from lsp_server.cli.models import install
from lsp_server.cli.terminal import ProgressBars
from lsp_server.host.client import host_status
from lsp_server.model_choice import Check, check_model
from lsp_server.settings import Settings

KEPT = 1  # exit status if the user says no
_GIGA = 1e9
_HEAD = (
    f"  {'model':<13} {'to fetch':>9} {'on disk':>8} {'memory':>8} {'a step':>8} {'a line':>8}\n"
)
_LEGEND = """\
* helps most here: the largest model that fits into memory and is quick enough to type with
Take another: `foregram models install NAME`, then `model = "NAME"` in foregram.toml.
"""


def set_up(arguments: argparse.Namespace, settings: Settings) -> int:
    """Show the choice for this machine, and install it if the user agrees. Raises ForegramError."""
    if settings.host_url is not None:
        raise ConfigurationError(f"the model runs at {settings.host_url}: set it up there")
    device = DeviceChoice.of(settings.device)
    if not device.is_cpu:
        sys.stdout.writelines(_on_gpu(device, settings.dtype))
        return 0
    machine, there = _measured(settings), Installed()
    room = min(shutil.disk_usage(one).free for one in (sys.prefix, settings.cache_folder))
    wanted = machine.choose([m.name for m in CPU_MODELS if m.name in there or m.disk < room]).model
    sys.stdout.writelines(_screen(machine, wanted, there))
    if settings.model not in (None, AUTO_MODEL):
        told = f"the setting `model` is {settings.model}: remove it, and the best model is taken"
        sys.stdout.write(visible(f"{told}\n"))
    if wanted.name in there:
        sys.stdout.write(f"{wanted.name} is installed\n")
        return 0
    if wanted.disk > room:
        needed, left = wanted.disk / _GIGA, room / _GIGA
        raise CacheError(
            f"{wanted.name} takes {needed:.1f} GB of disk, and {left:.1f} GB are free; make room in "
            f"{sys.prefix} and {settings.cache_folder}"
        )
    return _installed(wanted, is_agreed=arguments.yes)


def _on_gpu(device: DeviceChoice, dtype: str | None) -> Iterator[str]:
    from engine.model.gpu.fit import picked  # noqa: PLC0415 - it loads torch

    name, _ = picked(device, dtype)
    yield visible(f"{device.name}: {name} is the best model for its memory\n")
    yield f"the host fetches it at its start, `foregram models install {name}` now\n"


def check_choice(settings: Settings) -> Check:
    """Check the settings' model; for `auto` on a CPU say which one it is, and which is better."""
    is_auto = kind_of(settings.model or AUTO_MODEL) == "auto"
    if not is_auto or not DeviceChoice.of(settings.device).is_cpu:
        return check_model(settings.model)
    choice = known_machine(settings.cache_folder, _threads(settings)).choose(Installed())
    check = check_model(choice.model.name)
    told = "; ".join(filter(None, (f"auto: {check.what}", choice.hint)))
    return msgspec.structs.replace(check, what=told)


def _threads(settings: Settings) -> int:
    return settings.threads or default_threads()


def _measured(settings: Settings) -> CpuMachine:
    """Return this machine without our own host, which a better one would replace."""
    note("timing steps of this processor")
    machine = measured_machine(settings.cache_folder, _threads(settings), ProgressBars())
    status = asyncio.run(host_status(settings)).status
    return machine._replace(free=machine.free + (status.memory_mb * 2**20 if status else 0))


def _screen(machine: CpuMachine, wanted: CpuModel, there: Installed) -> Iterator[str]:
    yield f"{machine.free / _GIGA:.1f} GB of memory are free\n"
    yield _HEAD
    for model in CPU_MODELS:
        sizes = [f"{size / _GIGA:.1f} GB" for size in (model.fetched, model.disk, model.memory)]
        sizes[0] = "-" if model.name in there else sizes[0]
        step, line = model.step_ms(machine.ms_per_gb), model.line_ms(machine.ms_per_gb)
        mark, why = "*" if model == wanted else " ", machine.lack(model) or model.hindrance
        row = f"{mark} {model.name:<13} {sizes[0]:>9} {sizes[1]:>8} {sizes[2]:>8}"
        yield f"{row} {step:5.0f} ms {line / 1000:6.1f} s  {why}".rstrip() + "\n"
    yield _LEGEND


def _installed(wanted: CpuModel, *, is_agreed: bool) -> int:
    if not is_agreed and not sys.stdin.isatty():
        note("nothing was installed: `foregram setup --yes` does it without asking")
        return 0
    if not is_agreed and not agreed(f"Install {wanted.name}, {wanted.fetched / _GIGA:.1f} GB?"):
        return KEPT
    install(wanted.name)
    sys.stdout.write(f"{wanted.name} is installed; the next host takes it (`foregram stop`)\n")
    return 0
