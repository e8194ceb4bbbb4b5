"""The key of a verdict: device, driver, libraries, kernels (if any) and the model's shapes."""

import hashlib
import platform
import subprocess
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

import kernels
from engine.model.accelerators import name_of
from engine.model.gpu.forward import Forward

_DRIVER_LIMIT_S = 10.0  # seconds; without an answer, the system's version stands in
_ASK_DRIVER = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def key_of(forward: Forward) -> dict[str, str]:
    """Return all that a verdict depends on, without any of the user's names."""
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
    """Return the maker's name of a device, or a CPU's architecture."""
    return f"CPU of {platform.machine()}" if device.type == "cpu" else name_of(device)


@cache
def _driver() -> str:
    """Return the NVIDIA driver's version, or the system's, which ships the other drivers."""
    try:
        process = subprocess.run(
            _ASK_DRIVER, capture_output=True, check=True, text=True, timeout=_DRIVER_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return platform.release()
    return process.stdout.partition("\n")[0].strip()


def triton_version() -> str:
    """Return Triton's version, whatever package installed it, or an empty string without it."""
    try:
        import triton  # noqa: PLC0415 - not everywhere
    except ImportError:
        return ""
    return str(triton.__version__)


@cache
def _sources() -> str:
    """Hash the kernels, the steps that launch them, and the code that checks both."""
    total = hashlib.sha256()
    for folder in (Path(kernels.__path__[0]), Path(__file__).parents[1]):
        for path in sorted(folder.rglob("*.py")):
            if "cpu_forward" not in path.parts:
                total.update(path.relative_to(folder).as_posix().encode())
                total.update(path.read_bytes())
    return total.hexdigest()[:16]
