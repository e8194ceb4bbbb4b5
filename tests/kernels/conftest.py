"""Kernels run in Triton's interpreter where there is no GPU, and compile for one all the same."""

from collections.abc import Iterator

import pytest
import torch
from triton import knobs

from tests.support.hopper import HopperCompiler

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where kernels are tested."""
    return torch.device("cpu" if knobs.runtime.interpret else "cuda")


@pytest.fixture(scope="session")
def hopper() -> Iterator[HopperCompiler]:
    """Compiles for sm_90."""
    with HopperCompiler() as compiler:
        yield compiler
