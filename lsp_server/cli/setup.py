"""`foregram setup`: the model that helps most on this machine, or Continue's; then the editors."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import msgspec

from engine.cpu_choice import Installed, known_machine, measured_machine
from engine.errors import CacheError
from engine.model.cpu.fit import CPU_MODELS, CpuMachine, CpuModel
from engine.model.cpu.threads import default_threads
from engine.model.device import DeviceChoice, gpu_without_torch
from engine.model_names import AUTO_MODEL, kind_of
from lsp_server.cli.continue_config import read_continue
from lsp_server.cli.editors import next_steps
from lsp_server.cli.messages import agreed, note, visible
from lsp_server.cli.models import install
from lsp_server.cli.settings_file import add_settings
from lsp_server.cli.terminal import ProgressBars
from lsp_server.host.client import host_status
from lsp_server.model_choice import Check, check_model
from lsp_server.settings import Settings, user_file, variable_of

KEPT = 1  # exit status if the user says no
_GIGA = 1e9
_HEAD = f"  {'model':<13} {'to fetch':>9} {'on disk':>8} {'memory':>8} {'a line':>7}\n"
_LEGEND = """\
* helps most here: the largest model that fits and is fast enough while you type, else the smallest
A line is about how long the model takes to write one.
To take another: `foregram models install NAME`, then `model = "NAME"` in foregram.toml.
"""


def set_up(arguments: argparse.Namespace, settings: Settings) -> int:
    """Install a model, or take Continue's settings; then tell the next steps. Raises ForegramError."""
    if arguments.from_continue is not None:
        status = _taken_over(arguments.from_continue, is_agreed=arguments.yes)
    else:
        status = _with_model(settings, is_agreed=arguments.yes)
    if status == 0:
        sys.stdout.writelines(next_steps())
    return status


def _taken_over(path: Path, *, is_agreed: bool) -> int:
    parts = read_continue(path)
    sys.stdout.writelines(visible(str(part)) for part in parts)
    values = dict(setting for part in parts for setting in part.setting)
    if not add_settings(user_file(), values, is_agreed=is_agreed):
        return KEPT
    if "model" in values:
        told = f"`foregram models install {values['model']}` installs the model"
        sys.stdout.write(visible(f"{told}; `foregram setup` shows if it suits this machine\n"))
    else:
        sys.stdout.write("`foregram setup` installs a model\n")
    return 0


def _with_model(settings: Settings, *, is_agreed: bool) -> int:
    """Show the choice for this machine, and install it if the user agrees."""
    if settings.host_url is not None:
        note(f"the model runs at {settings.host_url}, which chooses it")
        return 0
    device = DeviceChoice.of(settings.device)
    if not device.is_cpu:
        return _on_gpu(device, settings, is_agreed=is_agreed)
    if told := gpu_without_torch():
        sys.stdout.write(visible(f"{told}; until then, on the CPU:\n"))
    machine, there = _measured(settings), Installed()
    room = shutil.disk_usage(settings.cache_folder).free
    fits = [one.name for one in CPU_MODELS if one.name in there or one.most_disk < room]
    wanted = machine.choose(fits).model
    sys.stdout.writelines(_screen(machine, wanted, there, fits))
    sys.stdout.write(visible(_started(settings)))
    if wanted.name in there:
        sys.stdout.write(f"{wanted.name} is installed\n")
        return 0
    if wanted.most_disk > room:
        needed, left = wanted.most_disk / _GIGA, room / _GIGA
        raise CacheError(
            f"{wanted.name} takes up to {needed:.1f} GB of disk while it is installed, and "
            f"{left:.1f} GB are free; make room in {settings.cache_folder}"
        )
    return _installed(wanted, settings, is_agreed=is_agreed)


def _is_auto(settings: Settings) -> bool:
    return kind_of(settings.model or AUTO_MODEL) == "auto"


def _started(settings: Settings) -> str:
    """Say whether a host starts the best model, and where settings belong."""
    file = user_file()
    if _is_auto(settings):  # a host chooses by the same rule: nothing is to be written
        return f"`auto`, the default, starts it; settings belong in {file.source}\n"
    place = file.source if "model" in file.values else variable_of("model")
    return f"{place} says that `model` is {settings.model}; remove that, and the best is taken\n"


def _on_gpu(device: DeviceChoice, settings: Settings, *, is_agreed: bool) -> int:
    """Fetch the model that the GPU runs best if the user agrees; else the host does it later."""
    from engine.model.gpu.fit import picked  # noqa: PLC0415 - it loads torch

    name, _ = picked(device, settings.dtype)
    sys.stdout.write(visible(f"{device.name}: {name} is the best model for its memory\n"))
    sys.stdout.write(visible(_started(settings)))
    if is_agreed or (sys.stdin.isatty() and agreed(f"Fetch {name} now?")):
        install(name, settings.cache_folder)
    elif _is_auto(settings):
        sys.stdout.write("the host fetches it when it starts\n")
    return 0


def check_choice(settings: Settings) -> Check:
    """Check the settings' model; for `auto` on a CPU say which one it is, and which is better."""
    if not _is_auto(settings) or not DeviceChoice.of(settings.device).is_cpu:
        return check_model(settings.model)
    machine = _without_host(known_machine(settings.cache_folder, _threads(settings)), settings)
    choice = machine.choose(Installed())
    check = check_model(choice.model.name)
    told = "; ".join(filter(None, (f"auto: {check.what}", choice.hint)))
    return msgspec.structs.replace(check, what=told)


def _threads(settings: Settings) -> int:
    return settings.threads or default_threads()


def _measured(settings: Settings) -> CpuMachine:
    note("measuring how fast this processor is")
    machine = measured_machine(settings.cache_folder, _threads(settings), ProgressBars())
    return _without_host(machine, settings)


def _without_host(machine: CpuMachine, settings: Settings) -> CpuMachine:
    """Return the machine without our own host, which a better one would replace."""
    status = asyncio.run(host_status(settings)).status
    if status is None:
        return machine
    own = status.memory_mb * 1e6 - status.mapped_bytes  # mapped files count as free already
    return machine._replace(free=machine.free + own)


def _screen(
    machine: CpuMachine, wanted: CpuModel, there: Installed, fits: Container[str]
) -> Iterator[str]:
    are = "are free" if sys.platform == "linux" else "count as free: half of all"
    yield f"{machine.free / _GIGA:.1f} GB of memory {are}\n"
    yield _HEAD
    for model in CPU_MODELS:
        sizes = [f"{size / _GIGA:.1f} GB" for size in (model.fetched, model.disk, model.memory)]
        sizes[0] = "-" if model.name in there else sizes[0]
        line = model.line_ms(machine.ms_per_gb) / 1000
        room = "" if model.name in fits else f"needs {model.most_disk / _GIGA:.1f} GB of free disk"
        mark, why = "*" if model == wanted else " ", machine.lack(model) or model.hindrance or room
        row = f"{mark} {model.name:<13} {sizes[0]:>9} {sizes[1]:>8} {sizes[2]:>8} {line:5.1f} s"
        yield f"{row}  {why}".rstrip() + "\n"
    yield _LEGEND


def _installed(wanted: CpuModel, settings: Settings, *, is_agreed: bool) -> int:
    if not is_agreed and not sys.stdin.isatty():
        note("nothing was installed: `foregram setup --yes` does it without asking")
        return 0
    if not is_agreed and not agreed(f"Install {wanted.name}, {wanted.fetched / _GIGA:.1f} GB?"):
        return KEPT
    install(wanted.name, settings.cache_folder)
    taken = "; a host that runs takes it after `foregram stop`" if _is_auto(settings) else ""
    sys.stdout.write(f"{wanted.name} is installed{taken}\n")
    return 0
