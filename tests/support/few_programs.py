"""Attention in few programs, each of which takes the interpreter its time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kernels import batch_attention as sizes

_COMBINED_ROWS = 16  # of a program that adds up shares


@contextmanager
def few_programs(splits: int) -> Iterator[None]:
    """Cut the keys of a model into so many splits."""
    from kernels.batch_attention import triton_kernel

    with pytest.MonkeyPatch.context() as patch:
        for module in (sizes, triton_kernel):
            patch.setattr(module, "num_splits", lambda kv_heads: splits)
        patch.setattr(triton_kernel, "COMBINED_ROWS", _COMBINED_ROWS)
        yield
