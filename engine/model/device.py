"""Where a model runs, and how its weights are held there."""

from dataclasses import dataclass
from typing import Self

import torch

from engine.config import check_device_name
from engine.errors import ConfigurationError
from kernels.weight import Quantization

LEAST_CAPABILITY = (9, 0)  # Hopper's: the kernels are made for it
SHARED_BYTES = 196_608  # of the shared memory, what a block of our greediest kernel takes
GPU_QUANTIZATIONS: dict[str, Quantization] = {"bfloat16": "float", "fp8": "fp8", "int4": "int4"}


def choose_device(name: str) -> torch.device:
    """Read `auto`, `cpu`, `cuda` or `cuda:N`; `auto` takes the first GPU that our kernels run on.

    Raises ConfigurationError for any other name, and for a GPU that is missing or unfit.
    """
    check_device_name(name)
    if name == "auto":
        fit = (f"cuda:{index}" for index in range(_num_gpus()) if not gpu_lack(index))
        return torch.device(next(fit, "cpu"))
    device = torch.device("cuda:0" if name == "cuda" else name)
    if device.type == "cuda":
        _check_gpu(name, device.index)
    return device


def gpu_quantization(wanted: str | None) -> Quantization:
    """How a GPU holds weights; None is bfloat16. Raises ConfigurationError."""
    if wanted is not None and wanted not in GPU_QUANTIZATIONS:
        raise ConfigurationError(
            f"dtype {wanted} is for the CPU; a GPU holds {', '.join(GPU_QUANTIZATIONS)}"
        )
    return GPU_QUANTIZATIONS[wanted or "bfloat16"]


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """The GPU that a device name selects, or why it selects none of those in this machine."""

    gpu: str = ""
    problem: str = ""

    @classmethod
    def of(cls, name: str) -> Self:
        """Choose as `choose_device` does; a process that loads no torch has another one ask."""
        if not _num_gpus():
            return cls()
        try:
            device = choose_device(name)
        except ConfigurationError as error:
            return cls(problem=str(error))
        if device.type == "cuda":
            return cls(gpu=torch.cuda.get_device_name(device))
        return cls(problem=gpu_lack(0))


def gpu_lack(index: int) -> str:
    """What a GPU lacks for our kernels, in a sentence with its name; empty where they run."""
    gpu = torch.cuda.get_device_properties(index)
    if (gpu.major, gpu.minor) < LEAST_CAPABILITY:
        least = ".".join(map(str, LEAST_CAPABILITY))
        has = f"{gpu.name} has compute capability {gpu.major}.{gpu.minor}"
        return f"{has}, and our kernels need {least}"
    # Where torch does not say, the GPU gets the benefit of the doubt.
    shared = getattr(gpu, "shared_memory_per_block_optin", SHARED_BYTES)
    if shared < SHARED_BYTES:
        has = f"{gpu.name} has {shared:,} bytes of shared memory for a block"
        return f"{has}, and our kernels need {SHARED_BYTES:,}"
    return ""


def _num_gpus() -> int:
    # A torch for AMD answers under the name of cuda.
    return torch.cuda.device_count() if not torch.version.hip and torch.cuda.is_available() else 0


def _check_gpu(name: str, index: int) -> None:
    num_gpus = _num_gpus()
    if not num_gpus:
        raise ConfigurationError(
            f"device {name}: torch sees no GPU here; `foregram doctor` says what is missing"
        )
    if index >= num_gpus:
        raise ConfigurationError(f"device {name}: there are {num_gpus} GPUs, counted from 0")
    if lack := gpu_lack(index):
        raise ConfigurationError(f"device {name}: {lack}; device = cpu works")
