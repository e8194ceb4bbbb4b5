"""Launches of Triton kernels that only compile: for a GPU that is elsewhere, or busy.

What is compiled lands in Triton's cache under the key of a real launch, which then finds it there:
the key is of the source, the types and the target. No process needs the device, or memory on it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

_WARP, _WIDE_WARPS = 32, {"gfx942": 64}  # AMD's data-centre GPUs have wide ones


class _NoDevice:
    """What Triton asks of a driver up to the point where a kernel is compiled."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """A kernel that a launch compiled: its name, its arguments by name, and Triton's own object."""

    name: str
    constants: dict[str, Any]
    kernel: Any


def compile_launches_for(architecture: int | str) -> list[CompiledLaunch]:
    """Have launches compile for an architecture, 86 or `gfx942`; returns what they compiled so far.

    For processes of their own: it holds for all that the process launches from now on.
    """
    backend = "hip" if isinstance(architecture, str) else "cuda"
    target = GPUTarget(backend, architecture, _WIDE_WARPS.get(str(architecture), _WARP))
    compiled, seen = list[CompiledLaunch](), set[int]()
    run = JITFunction.run

    def only_compile(self: Any, *args: Any, warmup: bool, **constants: Any) -> Any:
        kernel = run(self, *args, warmup=True, **constants)
        if id(kernel) not in seen:
            seen.add(id(kernel))
            compiled.append(CompiledLaunch(self.fn.__name__, constants, kernel))
        return kernel

    driver.set_active(_NoDevice(target))
    JITFunction.run = only_compile
    return compiled
