"""What a verdict holds for: device, driver, libraries, kernels or the lack of them, a model's shapes."""

import hashlib
import platform
import subprocess
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

import kernels
from engine.model.device import name_of
from engine.model.gpu.forward import Forward

_DRIVER_LIMIT_S = 10.0
_ASK_DRIVER = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def key_of(forward: Forward) -> dict[str, str]:
    """All that a verdict depends on, in words that name nothing of the user's."""
    device, weights = forward.arena.keys.device, forward.weights
    held = {f"layer {' '.join(layer.forms)}" for layer in weights.layers}
    place = "host" if weights.embedding.is_on_host else "device"
    held.add(f"embedding {weights.embedding.table.quantization} on the {place}")
    held.add(f"head {weights.head.quantization}")
    shape = asdict(forward.config) | {"deviations": "", "max_position": 0}
    return {
        "device": device_name(device),
        "driver": _driver() if device.type == "cuda" else platform.release(),
        "torch": str(torch.__version__),
        "triton": triton_version(),
        "kernels": _sources(),
        "run by": "PyTorch" if forward.operations.asks_host else "kernels",
        "shape": ", ".join(f"{name} {value}" for name, value in shape.items() if value),
        "weights": ", ".join(sorted(held)),
        "numbers": str(forward.arena.keys.dtype).removeprefix("torch."),
    }


def device_name(device: torch.device) -> str:
    """What its maker calls a device; of a CPU the architecture."""
    return f"CPU of {platform.machine()}" if device.type == "cpu" else name_of(device)


@cache
def _driver() -> str:
    """Its version; of other GPUs than NVIDIA's the system's, with which it comes."""
    try:
        process = subprocess.run(
            _ASK_DRIVER, capture_output=True, check=True, text=True, timeout=_DRIVER_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return platform.release()
    return process.stdout.partition("\n")[0].strip()


def triton_version() -> str:
    """Its version, by whichever name it was installed; empty where it is not."""
    try:
        import triton  # noqa: PLC0415 - not everywhere
    except ImportError:
        return ""
    return str(triton.__version__)


@cache
def _sources() -> str:
    """A sum over the kernels, the steps that launch them, and what checks both."""
    total = hashlib.sha256()
    for folder in (Path(kernels.__path__[0]), Path(__file__).parents[1]):
        for path in sorted(folder.rglob("*.py")):
            if "cpu_forward" not in path.parts:
                total.update(path.relative_to(folder).as_posix().encode())
                total.update(path.read_bytes())
    return total.hexdigest()[:16]
