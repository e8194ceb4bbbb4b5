"""What this machine can do at best: read memory, and multiply 8-bit numbers."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kernels.compiled import njit
from kernels.cpu_forward.packing import Linear, empty, pack
from kernels.cpu_forward.product import multiply_panel
from kernels.cpu_forward.state import Codes
from kernels.cpu_forward.tiles import GROUP, PANEL

_READ_BYTES = 1 << 29  # of all threads: beyond any cache
_ROWS, _INPUTS, _PANELS = 120, 1024, 200  # a panel and its rows stay in a core's own cache
_TRIES = 5


def read_bandwidth(num_threads: int) -> float:
    """Bytes a second that this many threads read together."""
    pieces = [empty((_READ_BYTES // 8 // num_threads,), np.int64) for _ in range(num_threads)]
    for piece in pieces:
        piece[:] = 1  # zeros that nobody wrote are one page in memory
    num_bytes = sum(piece.nbytes for piece in pieces)
    return num_bytes / _least_seconds(num_threads, lambda i: _sum(pieces[i]))


def product_rate(num_threads: int) -> float:
    """Products of 8 bits a second, each with its sum, of this many threads together."""
    weight = np.ones((PANEL, _INPUTS), np.int8)
    matrix = pack([Linear(weight, np.ones(PANEL, np.float32))])
    groups = _INPUTS // GROUP
    codes = Codes(
        values=empty((_ROWS, _INPUTS), np.int8),
        starts=empty((_ROWS, groups), np.int32),
        scales=empty((_ROWS, groups), np.float32),
    )
    sums = [empty((_ROWS, PANEL), np.float32) for _ in range(num_threads)]
    work = _ROWS * _INPUTS * PANEL * _PANELS * num_threads
    return work / _least_seconds(num_threads, lambda i: _multiply(codes, matrix, sums[i]))


def _least_seconds(num_threads: int, work: Callable[[int], object]) -> float:
    """The quickest of some tries: others on the machine only ever add."""
    work(0)  # compiles
    seconds = []
    with ThreadPoolExecutor(num_threads) as threads:
        for _ in range(_TRIES):
            began = time.perf_counter()
            list(threads.map(work, range(num_threads)))
            seconds.append(time.perf_counter() - began)
    return min(seconds)


@njit(nogil=True)
def _sum(numbers):
    total = 0
    for number in numbers:
        total += number
    return total


@njit(nogil=True)
def _multiply(codes, matrix, sums):
    for _ in range(_PANELS):
        multiply_panel(codes, _ROWS, matrix, 0, 0, 0, sums)
