"""The check of the GPU: which one the engine uses, or why none.

The engine chooses in a process of its own, in which this file runs: it loads torch, which takes
seconds and may fail.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec

from engine.errors import ConfigurationError
from lsp_server.model_choice import Check, failure

GPU_LIMIT_S = 60.0  # for torch to be loaded and to answer
NVIDIA_NODE = "/dev/nvidiactl"
OTHER_NODES = ("/dev/dxg", "/dev/kfd", "/dev/dri")  # WSL's, AMD's, Intel's; torch may use none
_PROBE = ("-m", "lsp_server.cli.gpu_check")
_OUR_FOLDER = Path(__file__).parents[2]  # the user's may hold an `engine`, and -m looks there first
_MOSTLY = 0.8  # the share of a card's memory that is free where nothing large runs
_UNSEEN = "there is a GPU, but torch cannot use it"
_DRIVER = "install a build of torch for CUDA, or a newer driver; device cpu needs neither"


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


def check_gpu(device: str) -> Check:
    """Which GPU the engine uses, or why none; `device` is what the settings say."""
    if device == "cpu":
        return Check("device", "ok", "CPU, as device says")
    is_nvidia = shutil.which("nvidia-smi") is not None or Path(NVIDIA_NODE).exists()
    may_be_any = platform.system() == "Darwin" or any(Path(one).exists() for one in OTHER_NODES)
    answer = _asked(device) if is_nvidia or may_be_any else GpuAnswer()
    if answer.gpu:
        return _chosen(answer)
    if answer.problem and device != "auto":
        return failure("device", ConfigurationError(answer.problem))
    if is_nvidia and not answer.problem:
        state: Literal["warning", "failed"] = "warning" if device == "auto" else "failed"
        return Check("device", state, f"CPU ({_UNSEEN})", _DRIVER)
    why = answer.problem or "no GPU found"
    if device == "auto":
        return Check("device", "ok", f"CPU ({why})")
    advice = "set device to auto, or install the driver of the GPU"
    return Check("device", "failed", f"device is {device}, but {why}", advice)


def _chosen(answer: GpuAnswer) -> Check:
    room = f"; {answer.memory}" if answer.memory else ""
    if answer.lack:
        return Check("device", "ok", f"{answer.gpu}, by PyTorch: {answer.lack}{room}")
    if answer.triton_lack:
        slower = f"{answer.gpu}, by PyTorch and several times slower than by our kernels"
        why, _, advice = answer.triton_lack.rpartition(": ")
        return Check("device", "warning", f"{slower}: {why}", advice)
    return Check("device", "ok", f"{answer.gpu}, by our kernels{room}")


def _asked(device: str) -> GpuAnswer:
    """What the process that knows torch answers; nothing if it fails, or takes too long."""
    try:
        said = subprocess.run(
            (sys.executable, *_PROBE, device),
            capture_output=True,
            check=True,
            cwd=_OUR_FOLDER,
            text=True,
            timeout=GPU_LIMIT_S,
        ).stdout
        # The last line: libraries may print something before it.
        return msgspec.json.decode(said.strip().rpartition("\n")[2], type=GpuAnswer)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return GpuAnswer()


def engine_answer(device: str) -> GpuAnswer:
    """Choose as the engine does; it loads torch."""
    from engine.model.device import DeviceChoice, accelerators, hardware_lack, triton_lack
    from engine.model.gpu.fit import Card, pick

    if not accelerators():
        return GpuAnswer()
    try:
        choice = DeviceChoice.of(device)
    except ConfigurationError as error:
        return GpuAnswer(problem=str(error))
    if choice.is_cpu:
        return GpuAnswer(problem=choice.why)
    card = Card.of(choice)
    memory, best = f"{card.free / 1e9:.1f} GB free", pick(card)
    if best:
        is_idle = card.free > _MOSTLY * card.memory_gib * 2**30  # else often our own host runs
        memory += f": {'' if is_idle else 'beside what runs there now, '}model auto is {best}"
    return GpuAnswer(choice.name, hardware_lack(choice.device), triton_lack(), memory=memory)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(engine_answer(sys.argv[1])).decode() + "\n")
