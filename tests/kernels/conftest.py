"""Kernels run in Triton's interpreter where there is no GPU, and compile for one all the same."""

from pathlib import Path

import pytest
import torch
from triton import knobs

from kernels.product import tiles

ROOT = Path(__file__).parents[2]

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run


@pytest.fixture(scope="session")
def device() -> torch.device:
    return torch.device("cpu" if knobs.runtime.interpret else "cuda")


@pytest.fixture(autouse=True)
def _wide_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products too take 128 outputs a program where rows are many, as real ones do."""
    monkeypatch.setattr(tiles, "_LEAST_WIDE_PROGRAMS", 0)
    monkeypatch.setattr(tiles, "_MOST_WIDE_SPLITS", 8)


@pytest.fixture(
    scope="session",
    params=["", pytest.param("oldest", marks=pytest.mark.compiler)],
    ids=["installed", "oldest"],
)
def triton_folder(request: pytest.FixtureRequest) -> Path | None:
    """Where the Triton lies that is to be taken: none is that of the environment."""
    if not request.param:
        return None
    folder = next(ROOT.glob(".triton-*[0-9]"), None)
    return folder or pytest.skip("`make oldest-triton` fetches the oldest Triton that is allowed")
