"""Choose a model's device. torch is loaded only where it may find a GPU, as it takes seconds."""

import importlib.util
import platform
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from engine.config import check_device_name
from engine.errors import ConfigurationError
from engine.installation import install_command

_NONE = "no GPU found"
_FIRST = {"cuda": "cuda:0", "xpu": "xpu:0"}
_DEVICES = Path("/dev")
# What a driver leaves there, by the builds of torch that use it. dxg: in Windows' Linux.
_NODES = {
    "cuda": ("nvidia*", "nvhost*", "dxg"),
    "hip": ("kfd", "dxg"),
    "xpu": ("dri/renderD*", "dxg"),
}


class DeviceUnfitError(ConfigurationError):
    """torch sees the device but cannot run the model on it."""

    def __init__(self, device: object, error: Exception) -> None:
        reason = str(error).partition("\n")[0]  # the rest is advice on debugging
        super().__init__(f"torch cannot run the model on {device}: {reason}")


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A selected device."""

    device: str  # as torch names it: cpu, cuda:0, xpu:0, mps
    name: str  # what its maker calls it
    kernel_lack: str = ""  # why our kernels do not run there; empty if they do
    why: str = ""  # why the CPU was chosen over a GPU

    @property
    def has_kernels(self) -> bool:
        """Whether our kernels run there."""
        return not self.kernel_lack

    @property
    def is_cpu(self) -> bool:
        """Whether the model runs on the CPU."""
        return self.device == "cpu"

    @property
    def sentence(self) -> str:
        """Describe for users how our own forward pass runs there, and why not better."""
        if self.is_cpu:
            return f"CPU ({self.why})"
        if self.has_kernels:
            return f"{self.name}, by our kernels"
        return f"{self.name}, by PyTorch: {self.kernel_lack}"

    @classmethod
    def of(cls, name: str) -> Self:
        """Parse a device's name; `cuda` also means an AMD GPU. Raises ConfigurationError."""
        check_device_name(name)
        if name == "cpu":
            return cls.cpu("device says so")
        if name == "auto":
            return cls._best() if may_have_gpu() else cls.cpu(gpu_without_torch() or _NONE)
        require_torch(f"device {name}")
        from engine.model import accelerators as torch_gpus  # noqa: PLC0415 - it loads torch

        device = _FIRST.get(name, name)
        there = {str(one): one for one in torch_gpus.accelerators()}
        if device not in there:
            seen = ", ".join(there) or "no GPU"
            raise ConfigurationError(
                f"device {device}: torch sees {seen} here; `foregram doctor` says what is missing"
            )
        if lack := torch_gpus.torch_lack(there[device]):
            raise ConfigurationError(f"device {name}: {lack}; device = cpu works")
        return cls(device, torch_gpus.name_of(there[device]), torch_gpus.kernel_lack(there[device]))

    @classmethod
    def cpu(cls, why: str) -> Self:
        """Return the CPU, chosen for the reason `why`."""
        return cls("cpu", "CPU", "they are for GPUs", why)

    @classmethod
    def _best(cls) -> Self:
        from engine.model.accelerators import accelerators, kernel_lack, name_of, unfitness  # noqa: PLC0415 - it loads torch

        unfit = {one: unfitness(one) for one in accelerators()}
        fit = [cls(str(one), name_of(one), kernel_lack(one)) for one in unfit if not unfit[one]]
        if fit:
            return min(fit, key=lambda choice: not choice.has_kernels)  # the first among equals
        return cls.cpu(next(iter(unfit.values()), _NONE))


def require_torch(what: str) -> None:
    """Raise ConfigurationError if PyTorch and transformers are not installed."""
    if not has_torch():
        raise ConfigurationError(
            f"{what} needs PyTorch, which is not installed: {install_command('gpu')}"
        )


def has_torch() -> bool:
    """Whether PyTorch and transformers are installed; neither is loaded."""
    return all(map(importlib.util.find_spec, ("torch", "transformers")))


def gpu_without_torch() -> str:
    """Say how an NVIDIA GPU of this machine can be used; empty if PyTorch is there, or no GPU."""
    # In Windows' Linux, dxg is there for any maker's GPU.
    there = any(any(_DEVICES.glob(node)) for node in _NODES["cuda"] if node != "dxg")
    if not there or has_torch():
        return ""
    return f"an NVIDIA GPU is here, which needs PyTorch: {install_command('gpu')}"


def may_have_gpu() -> bool:
    """Whether torch might find a GPU, by its build and what drivers leave; torch is not loaded."""
    if not has_torch():
        return False
    if sys.platform != "linux":
        return sys.platform != "darwin" or platform.machine() == "arm64"
    built = _torch_build()
    nodes = [node for kind in _NODES if built.get(kind) for node in _NODES[kind]]
    return any(any(_DEVICES.glob(node)) for node in nodes)


def _torch_build() -> dict[str, Any]:
    """Return what torch's version.py says, which is readable without the rest of torch."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    return runpy.run_path(str(Path(found.origin).with_name("version.py")))
