"""The check of the GPU: which one the engine uses, or why none.

It loads no torch: the engine chooses in a process of its own.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from engine.errors import ConfigurationError
from lsp_server.model_choice import Check, failure

GPU_LIMIT_S = 60.0
WSL_NODE = "/dev/dxg"  # whoever made the GPU
GPU_NODES = ("/dev/nvidiactl", WSL_NODE)
OTHER_NODES = ("/dev/kfd", "/dev/dri")  # AMD's and Intel's; most are nothing for torch
_Kind = TypeVar("_Kind")
_PROBE = ("-m", "lsp_server.cli.gpu_probe")
_OUR_FOLDER = Path(__file__).parents[2]  # the user's may hold an `engine`, and -m looks there first
CARDS_OPTION = "--cards"  # instead of a device's name


class GpuAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The GPU that a device name selects, what our kernels lack there, or why it selects none.

    `lack` is the GPU's own, `triton_lack` what can be installed. `memory` says what is free and
    which model `auto` takes there. All are empty where torch sees no GPU.
    """

    gpu: str = ""
    lack: str = ""
    triton_lack: str = ""
    problem: str = ""
    memory: str = ""


class CardFit(msgspec.Struct, frozen=True):
    """A model that fits a card, how it is held, and what it takes of the memory.

    The cache has room for `positions` tokens. `floor_ms` is how long a step takes at the least, behind
    2,048 of them: so long is all read that it needs. `is_picked`: `auto` takes it.
    """

    model: str
    form: str
    weights_bytes: int
    working_bytes: int
    cache_bytes: int
    positions: int
    floor_ms: float
    is_picked: bool


class CardFits(msgspec.Struct, frozen=True):
    """What fits a card, the largest model first."""

    card: str
    fits: tuple[CardFit, ...]


def check_gpu(device: str) -> Check:
    """Which GPU the engine uses, or why none; `device` is what the settings say."""
    if device == "cpu":
        return Check("device", "ok", "CPU, as device says")
    node = next((node for node in GPU_NODES if Path(node).exists()), "")
    sign = "nvidia-smi" if shutil.which("nvidia-smi") else node
    is_mac = platform.system() == "Darwin"
    may_be_another = is_mac or any(Path(other).exists() for other in OTHER_NODES)
    found = _answer(device, GpuAnswer) if sign or may_be_another else None
    choice = found or GpuAnswer()
    if choice.gpu:
        return _chosen_gpu(choice)
    if choice.problem and device != "auto":
        return failure("device", ConfigurationError(choice.problem))
    if choice.problem:
        return _no_gpu(device, choice.problem, "set device to auto or cpu")
    if not sign:
        advice = "set device to auto, or install the driver of the GPU"
        return _no_gpu(device, "no GPU found", advice)
    return _unseen_gpu(device, sign)


def card_fits() -> list[CardFits]:
    """What fits cards of all sizes; nothing if torch fails, or takes too long."""
    return _answer(CARDS_OPTION, list[CardFits]) or []


def _answer(asked: str, kind: type[_Kind]) -> _Kind | None:
    """What the process that knows torch answers; None if it fails, or takes too long."""
    said = _output(sys.executable, *_PROBE, asked)
    try:  # the last line: libraries may print something before it
        return msgspec.json.decode(said.rpartition("\n")[2], type=kind)
    except msgspec.MsgspecError:
        return None


def _output(*command: str) -> str:
    """What a command prints; nothing if it fails, or takes too long."""
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            check=True,
            cwd=_OUR_FOLDER,
            text=True,
            timeout=GPU_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip()


def _chosen_gpu(choice: GpuAnswer) -> Check:
    room = f"; {choice.memory}" if choice.memory else ""
    if choice.lack:
        return Check("device", "ok", f"{choice.gpu}, by PyTorch: {choice.lack}{room}")
    if choice.triton_lack:
        slower = f"{choice.gpu}, by PyTorch and several times slower than by our kernels"
        why, _, advice = choice.triton_lack.rpartition(": ")
        return Check("device", "warning", f"{slower}: {why}", advice)
    return Check("device", "ok", f"{choice.gpu}, by our kernels{room}")


def _no_gpu(device: str, why: str, advice: str) -> Check:
    if device == "auto":
        return Check("device", "ok", f"CPU ({why})")
    return Check("device", "failed", f"device is {device}, but {why}", advice)


def _unseen_gpu(device: str, sign: str) -> Check:
    """There is a GPU that torch cannot use, or perhaps there is one."""
    state: Literal["ok", "warning", "failed"] = "warning" if device == "auto" else "failed"
    if sign == "nvidia-smi":
        advice = "install a build of torch for CUDA, or a newer driver; device cpu needs neither"
        return Check("device", state, "CPU (there is a GPU, but torch cannot use it)", advice)
    if device == "auto" and sign == WSL_NODE:
        state = "ok"
    what = f"torch sees no GPU; {sign} may be one that it could use, which only nvidia-smi can tell"
    advice = (
        "put nvidia-smi on the PATH (in WSL it is in /usr/lib/wsl/lib); device cpu needs no GPU"
    )
    return Check("device", state, f"CPU ({what})", advice)
