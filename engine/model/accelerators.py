"""GPUs as torch sees them: what they are called, what they have, and what they lack."""

import importlib.util
import os
import shutil
import sysconfig
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from engine.installation import install_command
from kernels.device_limits import LEAST_CAPABILITY, LEAST_SHARED_BYTES

_LEAST_MEMORY = 3.5e9  # bytes that `auto` requires: the smallest model, CUDA itself and a cache
# Bytes per second by a word of the device's name, from data sheets. Apple: the first chip of each
# kind. Intel: desktop cards; "" stands for GPUs that share the processor's memory.
_APPLE_BANDWIDTHS = {"": 68e9, "Pro": 150e9, "Max": 300e9, "Ultra": 800e9}
_INTEL_BANDWIDTHS = {
    "A310": 124e9,
    "A380": 186e9,
    "A580": 512e9,
    "A750": 512e9,
    "A770": 560e9,
    "B570": 380e9,
    "B580": 456e9,
    "B50": 224e9,
    "B60": 456e9,
    "": 80e9,
}
_INTEL_PART = 0.6  # part of a GPU's memory assumed free when its driver does not report it


def accelerators() -> list[torch.device]:
    """Return the devices that torch can use besides the CPU."""
    num_cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found = [torch.device("cuda", index) for index in range(num_cuda)]
    if torch.xpu.is_available():
        found.append(torch.device("xpu", 0))
    if torch.backends.mps.is_available():
        found.append(torch.device("mps"))
    return found


def name_of(device: torch.device) -> str:
    """Return the maker's name of a device."""
    if device.type == "mps":
        return f"{torch.backends.mps.get_name()}'s GPU"
    return str(_properties(device).name)


def free_bytes(device: torch.device) -> int:
    """Return the free memory in bytes; on a Mac, as much as the system grants a GPU."""
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    if device.type == "xpu":
        return _intel_free_bytes(device)
    free: int = torch.cuda.mem_get_info(device)[0]
    return free


def total_bytes(device: torch.device) -> int:
    """Return the total memory in bytes; on a Mac, as much as the system grants a GPU."""
    if device.type == "mps":
        return torch.mps.recommended_max_memory()
    return int(_properties(device).total_memory)


def made_current(device: torch.device) -> AbstractContextManager[object]:
    """Make a device current in this thread, since Triton launches on the current device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def memory_bandwidth(device: torch.device) -> float:
    """Return a GPU's memory bandwidth in bytes per second; 0 if torch does not report it."""
    if device.type == "mps":
        kind = torch.backends.mps.get_name().rpartition(" ")[2]
        return _APPLE_BANDWIDTHS.get(kind, _APPLE_BANDWIDTHS[""])
    if device.type == "xpu":
        words = torch.xpu.get_device_name(device).split()
        return next(speed for name, speed in _INTEL_BANDWIDTHS.items() if not name or name in words)
    if torch.version.hip:  # it reports the clock of the memory controller instead
        return 0.0
    gpu = _properties(device)
    kilohertz, bits = getattr(gpu, "memory_clock_rate", 0), getattr(gpu, "memory_bus_width", 0)
    return 2 * 1000 * kilohertz * bits / 8  # two transfers per cycle


def kernel_lack(device: torch.device) -> str:
    """Say why our kernels do not run on a device; empty if they do."""
    return hardware_lack(device) or triton_lack()


def triton_lack() -> str:
    """Say what is missing to compile our kernels, and how to install it; empty if nothing is."""
    if importlib.util.find_spec("triton") is None:
        return f"our kernels need Triton: {install_command('gpu')}"
    if not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        return "our kernels need Triton, and Triton a C compiler: install gcc or clang"
    if not _has_headers():
        return (
            "our kernels need Triton, and Triton what Python's own programs in C need: install "
            "python3-dev (python3-devel on Fedora)"
        )
    return ""


def _has_headers() -> bool:
    scheme = sysconfig.get_default_scheme()
    scheme = "posix_prefix" if scheme == "posix_local" else scheme  # Debian's own scheme
    return (Path(sysconfig.get_path("include", scheme)) / "Python.h").exists()


def hardware_lack(device: torch.device) -> str:
    """Say which feature our kernels need and the device lacks; empty if none."""
    if device.type != "cuda" or torch.version.hip:
        return "our kernels are for NVIDIA GPUs"
    gpu = _properties(device)
    if (gpu.major, gpu.minor) < LEAST_CAPABILITY:
        least = ".".join(map(str, LEAST_CAPABILITY))
        return f"it has compute capability {gpu.major}.{gpu.minor}, and our kernels need {least}"
    # If torch does not report it, give the GPU the benefit of the doubt.
    shared = getattr(gpu, "shared_memory_per_block_optin", LEAST_SHARED_BYTES)
    if shared < LEAST_SHARED_BYTES:
        has = f"it has {shared:,} bytes of shared memory for a block"
        return f"{has}, and our kernels need {LEAST_SHARED_BYTES:,}"
    return ""


def torch_lack(device: torch.device) -> str:
    """Say why this build of torch cannot use a GPU; code also runs on later minor versions."""
    built = torch.cuda.get_arch_list() if device.type == "cuda" and not torch.version.hip else []
    versions = [int(one.removeprefix("sm_").rstrip("af")) for one in built if one.startswith("sm_")]
    if not versions or any(one.startswith("compute_") for one in built):
        return ""
    gpu = _properties(device)
    if any(one // 10 == gpu.major and one % 10 <= gpu.minor for one in versions):
        return ""
    has = f"{gpu.name} has compute capability {gpu.major}.{gpu.minor}"
    return f"{has}, which this build of torch has no code for"


def unfitness(device: torch.device) -> str:
    """Say why `auto` passes over a GPU; empty if it does not."""
    return torch_lack(device) or _memory_lack(device)


def _memory_lack(device: torch.device) -> str:
    total = total_bytes(device)
    if total >= _LEAST_MEMORY:
        return ""
    return f"{name_of(device)} has {total / 1e9:.1f} GB of memory, too little for a model"


def _intel_free_bytes(device: torch.device) -> int:
    """Return free memory, estimated if the driver does not report it (many integrated GPUs)."""
    try:
        free: int = torch.xpu.mem_get_info(device)[0]
    except RuntimeError:
        total = _INTEL_PART * _properties(device).total_memory
        free = max(0, int(total) - torch.xpu.memory_reserved(device))
    return free


def _properties(device: torch.device) -> Any:  # noqa: ANN401 - torch says no more
    module = torch.xpu if device.type == "xpu" else torch.cuda
    return module.get_device_properties(device.index)
