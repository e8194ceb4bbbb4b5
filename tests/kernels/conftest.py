"""Kernels run in Triton's interpreter where there is no GPU, and compile for one all the same."""

from collections.abc import Iterator

import pytest
import torch
from triton import knobs

from kernels.product import tiles
from tests.support.gpu_compiler import GpuCompiler

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where kernels are tested."""
    return torch.device("cpu" if knobs.runtime.interpret else "cuda")


@pytest.fixture(autouse=True)
def _wide_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products too take 128 outputs a program where rows are many, as real ones do."""
    monkeypatch.setattr(tiles, "_LEAST_WIDE_PROGRAMS", 0)


@pytest.fixture(scope="session")
def hopper() -> Iterator[GpuCompiler]:
    """Compiles for sm_90, unless told another architecture."""
    with GpuCompiler() as compiler:
        yield compiler
