"""The memory use of this process."""

import ctypes
import mmap
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from engine import container

_M_ARENA_MAX = -8  # of glibc's malloc.h
_ARENAS = 2  # of all threads together; glibc's default is up to eight per core
_STATUS, _ALL = Path("/proc/self/status"), Path("/proc/meminfo")


def resident_bytes() -> int:
    """Return the resident memory; on macOS, which has no file for it, the peak."""
    return _file_bytes(_STATUS, "VmRSS") or _peak_by_usage()


def mapped_bytes() -> int:
    """Return the part that is mapped from files and shared with other processes; 0 on macOS."""
    return _file_bytes(_STATUS, "RssFile")


def peak_resident_bytes() -> int:
    """Return the peak of the resident memory so far."""
    return _file_bytes(_STATUS, "VmHWM") or _peak_by_usage()


def available_bytes() -> int:
    """Return the memory that programs can still take; on macOS, half of all there is."""
    free = _file_bytes(_ALL, "MemAvailable") or _half_of_all()
    return max(0, int(min(free, container.memory_left())))


def return_free_memory() -> bool:
    """Give back free pages that glibc keeps between used ones; False for other C libraries."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)  # takes milliseconds, while other threads run
    return trim is not None


def sparse_zeros(shape: int | tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """Zeros, at least one, whose pages take memory only once they are written to.

    `np.zeros` clears memory that was used before, all of it, and asks for pages of 2 MiB.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a system without them
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(shape)


def use_few_arenas() -> None:
    """Limit glibc to two arenas, before any thread starts: else each has one with its own gaps."""
    if _malloc_trim() is not None:  # glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def _half_of_all() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _file_bytes(file: Path, name: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _peak_by_usage() -> int:
    # On Linux this includes the parent's memory when it started this process.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
