"""Kernels run in Triton's interpreter where there is no GPU, and compile for one all the same."""

from collections.abc import Iterator

import pytest
import torch

from tests.support.hopper import HopperCompiler

if not torch.cuda.is_available():
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is imported


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where kernels are tested."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(scope="session")
def hopper() -> Iterator[HopperCompiler]:
    """Compiles for sm_90."""
    with HopperCompiler() as compiler:
        yield compiler
