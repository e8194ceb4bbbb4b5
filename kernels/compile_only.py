"""Has a process compile what it launches, and run nothing: it needs no GPU."""

from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

_WARP = 32


def only_compile(architecture: int) -> None:
    """From now on launches fill Triton's cache for a compute capability, 90 for 9.0.

    There is no way back, so it is for a process of its own.
    """
    run = JITFunction.run

    def compiled(self: JITFunction, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Triton's own
        return run(self, *args, **kwargs | {"warmup": True})

    JITFunction.run = compiled
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: GPUTarget("cuda", architecture, _WARP),
            get_current_device=lambda: 0,
            get_current_stream=lambda _: 0,
            get_active_torch_device=lambda: torch.device("cpu"),
        )
    )
