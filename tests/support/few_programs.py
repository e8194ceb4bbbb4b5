"""Attention in few programs, each of which takes the interpreter its time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kernels import batch_attention as sizes

_SPLITS = 4
_COMBINED_ROWS = 16  # of a program that adds up shares


@contextmanager
def few_programs() -> Iterator[None]:
    """Cut the keys of a model into few splits, so that some of them have several tiles."""
    from kernels.batch_attention import triton_kernel

    with pytest.MonkeyPatch.context() as patch:
        for module in (sizes, triton_kernel):
            patch.setattr(module, "SPLITS", _SPLITS)
        patch.setattr(triton_kernel, "COMBINED_ROWS", _COMBINED_ROWS)
        yield
