"""Where a model runs, and how its weights are held there."""

from dataclasses import dataclass
from typing import Self

import torch

from engine.config import check_device_name
from engine.errors import ConfigurationError
from kernels.weight import Form

GPU_FORMS: dict[str, Form] = {"bfloat16": "float", "fp8": "fp8", "int4": "int4"}


@dataclass(frozen=True, slots=True)
class Device:
    """A device that is there."""

    torch_device: torch.device

    @classmethod
    def choose(cls, name: str) -> Self:
        """Read `auto`, `cpu`, `cuda` or `cuda:N`; `auto` takes a GPU that torch can use.

        Raises ConfigurationError for another name, and for one that is not there.
        """
        check_device_name(name)
        num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if name == "auto":
            name = "cuda" if num_gpus else "cpu"
        device = torch.device("cuda:0" if name == "cuda" else name)
        if device.type == "cuda" and not num_gpus:
            raise ConfigurationError(
                f"device {name}: torch sees no GPU here; `foregram doctor` says what is missing"
            )
        if device.type == "cuda" and (device.index or 0) >= num_gpus:
            raise ConfigurationError(f"device {name}: there are {num_gpus} GPUs, counted from 0")
        return cls(device)

    @property
    def is_gpu(self) -> bool:
        """Whether our kernels run there."""
        return self.torch_device.type == "cuda"

    @property
    def free_bytes(self) -> int:
        """Memory of the GPU that nobody has."""
        free: int = torch.cuda.mem_get_info(self.torch_device)[0]
        return free

    def form(self, dtype: str | None) -> Form:
        """How a GPU holds weights; None is bfloat16. Raises ConfigurationError."""
        if dtype is not None and dtype not in GPU_FORMS:
            raise ConfigurationError(
                f"dtype {dtype} is for the CPU; a GPU holds {', '.join(GPU_FORMS)}"
            )
        return GPU_FORMS[dtype or "bfloat16"]
