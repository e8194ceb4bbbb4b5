"""The GPU check. It runs this file as a process, as loading torch takes seconds and may fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from engine.errors import ConfigurationError
from engine.model.device import gpu_without_torch, may_have_gpu
from lsp_server.model_choice import Check, failure

GPU_LIMIT_S = 60.0  # seconds for a process to load torch and answer
NVIDIA_NODE = "/dev/nvidiactl"
_PROBE = ("-m", "lsp_server.cli.gpu_check")
_OUR_FOLDER = Path(__file__).parents[2]  # -m also finds an `engine` in the current folder
_MOSTLY = 0.8  # share of a card's memory that is free while nothing large runs
_UNSEEN = "CPU (there is a GPU, but torch cannot use it)"
_DRIVER = "install a build of torch for CUDA, or a newer driver; device cpu needs neither"


def check_gpu(device: str) -> Check:
    """Check which GPU the engine uses, or why it uses none; `device` is the setting."""
    if device == "cpu":
        return Check("device", "ok", "CPU, as device says")
    if lack := gpu_without_torch():
        what, _, advice = lack.partition(": ")
        return Check("device", "warning" if device == "auto" else "failed", what, f"run: {advice}")
    is_nvidia = shutil.which("nvidia-smi") is not None or Path(NVIDIA_NODE).exists()
    if (is_nvidia or may_have_gpu()) and (found := _asked(device)):
        return found
    if is_nvidia:
        return Check("device", "warning" if device == "auto" else "failed", _UNSEEN, _DRIVER)
    if device == "auto":
        return Check("device", "ok", "CPU (no GPU found)")
    advice = "set device to auto, or install the driver of the GPU"
    return Check("device", "failed", f"device is {device}, but no GPU found", advice)


def _asked(device: str) -> Check | None:
    """Return the answer of a process that loads torch; None if it fails or takes too long."""
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
        return msgspec.json.decode(said.strip().rpartition("\n")[2], type=Check | None)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return None


def engine_check(device: str) -> Check | None:
    """Check the device that the engine chooses; None where torch sees no GPU. Loads torch."""
    import torch

    from engine.model.accelerators import accelerators, hardware_lack, triton_lack
    from engine.model.device import DeviceChoice
    from engine.model.gpu.fit import Card, pick

    if not accelerators():
        return None
    try:
        choice = DeviceChoice.of(device)
    except ConfigurationError as error:
        return failure("device", error)
    if choice.is_cpu:
        return Check("device", "ok", f"CPU ({choice.why})")
    lack = hardware_lack(torch.device(choice.device))
    if not lack and (missing := triton_lack()):
        slower = f"{choice.name}, by PyTorch and several times slower than by our kernels"
        why, _, advice = missing.rpartition(": ")
        return Check("device", "warning", f"{slower}: {why}", advice)
    card, means = Card.of(choice), f"by PyTorch: {lack}" if lack else "by our kernels"
    what = f"{choice.name}, {means}; {card.free / 1e9:.1f} GB free"
    if best := pick(card):
        is_idle = card.free > _MOSTLY * card.memory_gib * 2**30  # if not, often our host runs
        what += f": {'' if is_idle else 'beside what runs there now, '}model auto is {best}"
    return Check("device", "ok", what)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(engine_check(sys.argv[1])).decode() + "\n")
