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

    def __init__(self, architecture: int | str) -> None:
        self._architecture = architecture

    def get_current_target(self) -> GPUTarget:
        backend = "hip" if isinstance(self._architecture, str) else "cuda"
        warp = _WIDE_WARPS.get(str(self._architecture), _WARP)
        return GPUTarget(backend, self._architecture, warp)

    def get_current_device(self) -> int | str:
        """Triton keeps what it compiled by device, which is here one of each architecture."""
        return self._architecture

    def get_current_stream(self, _: int | str) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """A kernel that a launch compiled: its name, its arguments by name, and Triton's own object."""

    name: str
    constants: dict[str, Any]
    kernel: Any


class LaunchCompiler:
    """Has all launches of this process compile and nothing else, from now on."""

    def __init__(self) -> None:
        self._compiled, self._seen = list[CompiledLaunch](), set[str]()
        run = JITFunction.run

        def only_compile(launched: Any, *args: Any, warmup: bool, **constants: Any) -> Any:
            kernel = run(launched, *args, warmup=True, **constants)
            if kernel.hash not in self._seen:
                self._seen.add(kernel.hash)
                self._compiled.append(CompiledLaunch(launched.fn.__name__, constants, kernel))
            return kernel

        JITFunction.run = only_compile

    def compile_for(self, architecture: int | str) -> None:
        """Launches are for this architecture from now on, 86 or `gfx942`."""
        driver.set_active(_NoDevice(architecture))

    def take(self) -> list[CompiledLaunch]:
        """What was compiled for the first time since this was last asked for."""
        taken, self._compiled = self._compiled, []
        return taken
