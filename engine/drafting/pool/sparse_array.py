"""Arrays whose pages take memory only once they are written to."""

import mmap
from contextlib import suppress

import numpy as np


def sparse_zeros(count: int, dtype: type[np.generic]) -> np.ndarray:
    """`count` zeros, at least one, whose pages take memory only once they are written to.

    `np.zeros` promises no such thing: where arrays of that size were freed before, glibc gives it
    used memory, which it clears, all of it; and it asks for pages of 2 MiB.
    """
    size = count * np.dtype(dtype).itemsize
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return np.frombuffer(mmap.mmap(-1, size), dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a system without them
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype)
