"""The memory use of this process."""

import ctypes
import resource
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

_M_ARENA_MAX = -8  # of glibc's malloc.h
_ARENAS = 2  # of all threads together; glibc's default is up to eight per core
_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """Return the resident memory; on macOS, which has no file for it, the peak."""
    return _status_bytes("VmRSS") or _peak_by_usage()


def peak_resident_bytes() -> int:
    """Return the peak of the resident memory so far."""
    return _status_bytes("VmHWM") or _peak_by_usage()


def return_free_memory() -> bool:
    """Give back free pages that glibc keeps between used ones; False for other C libraries."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)  # takes milliseconds, while other threads run
    return trim is not None


def use_few_arenas() -> None:
    """Limit glibc to two arenas, before any thread starts: else each has one with its own gaps."""
    if _malloc_trim() is not None:  # glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def _status_bytes(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _peak_by_usage() -> int:
    # On Linux this includes the parent's memory when it started this process.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
