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

_WARP = 32


class _NoDevice:
    """What Triton asks of a driver up to the point where a kernel is compiled."""

    def __init__(self, architecture: int) -> None:
        self._architecture = architecture

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._architecture, _WARP)

    def get_current_device(self) -> int:
        """Triton keeps what it compiled by device, which is here one of each architecture."""
        return self._architecture

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

    def compile_for(self, architecture: int) -> None:
        """Launches are for this architecture from now on."""
        driver.set_active(_NoDevice(architecture))

    def take(self) -> list[CompiledLaunch]:
        """What was compiled for the first time since this was last asked for."""
        taken, self._compiled = self._compiled, []
        return taken
