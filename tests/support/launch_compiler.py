"""Launches of Triton kernels that only compile: for a GPU that is elsewhere, or busy.

The result lands in Triton's cache under the key of a real launch, which then finds it. The key
consists of the source, the types and the target. No process needs the device or its memory.
"""

from dataclasses import dataclass
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

_WARP = 32


class _NoDevice:
    """The part of Triton's driver that compiling a kernel needs."""

    def __init__(self, architecture: int) -> None:
        self._architecture = architecture

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._architecture, _WARP)

    def get_current_device(self) -> int:
        """Return the architecture, as Triton caches kernels by device."""
        return self._architecture

    def get_current_stream(self, _: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    name: str
    constants: dict[str, Any]
    kernel: Any


class LaunchCompiler:
    """Makes all launches of this process only compile, from its creation on."""

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
        driver.set_active(_NoDevice(architecture))

    def take(self) -> list[CompiledLaunch]:
        """Return the kernels compiled for the first time since the last call."""
        taken, self._compiled = self._compiled, []
        return taken
