"""How 8-bit weights lie in memory: panel after panel, in the order in which a product reads them."""

from typing import NamedTuple

import numpy as np

from kernels.compiled import njit
from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.state import Matrix
from kernels.cpu_forward.tiles import GROUP, PANEL

_LINE = 64  # bytes of a processor's cache line
_NONE = -1


class Linear(NamedTuple):
    """One layer's: `weight` int8 [outputs, inputs], `scale` and `bias` float32 [outputs]."""

    weight: np.ndarray
    scale: np.ndarray
    bias: np.ndarray | None = None


def padded(size: int, whole: int) -> int:
    """`size`, filled up to a multiple of `whole`."""
    return -(-size // whole) * whole


def empty(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Zeros that begin with a line of the cache."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    whole: np.ndarray = raw[start : start + size].view(dtype).reshape(shape)
    return whole


def layout() -> str:
    """Name the layout of this processor's `pack`: weights packed for another one are no use here."""
    return f"panels of {PANEL}, groups of {GROUP}, offset {host_unit().offset}"


def pack(linear: Linear, *, paired: bool = False) -> Matrix:
    """Lay out one layer. With `paired`, panels of the two halves alternate.

    Raises ValueError for a scale or a bias of another size.
    """
    outputs, inputs = linear.weight.shape
    rows = [len(held) for held in (linear.scale, linear.bias) if held is not None]
    if set(rows) != {outputs}:
        raise ValueError(f"scale and bias of {rows} outputs beside {outputs}")
    order, offset = _order(outputs, paired=paired), np.uint8(host_unit().offset)
    codes = np.empty((len(order) // PANEL, padded(inputs, GROUP) // 4, PANEL, 4), np.uint8)
    _pack_codes(linear.weight, order, offset, codes)
    scale, bias = _ordered(linear.scale, order), _ordered(linear.bias, order)
    return Matrix(codes[None], scale[None], bias[None])


def _order(outputs: int, *, paired: bool) -> np.ndarray:
    """Which output stands at each place, int64; -1 where none does."""
    half = outputs // 2 if paired else outputs
    first = np.full(padded(half, PANEL), _NONE)
    first[:half] = np.arange(half)
    if not paired:
        return first
    second = np.where(first == _NONE, _NONE, first + half)
    return np.stack([first.reshape(-1, PANEL), second.reshape(-1, PANEL)], axis=1).ravel()


def _ordered(numbers: np.ndarray | None, order: np.ndarray) -> np.ndarray:
    if numbers is None:
        return np.zeros(len(order), np.float32)
    return np.where(order == _NONE, 0, numbers[order]).astype(np.float32)


@njit("void(int8[:, ::1], int64[::1], uint8, uint8[:, :, :, ::1])", nogil=True, cache=True)
def _pack_codes(weight, order, offset, codes):
    # All that other files decide is given: numba would not see that they have changed.
    codes[:] = offset  # zeros, as they are stored
    for place in range(len(order)):
        panel, lane = divmod(place, codes.shape[2])
        if order[place] >= 0:
            for i in range(weight.shape[1]):
                # An offset of 128 turns the sign's bit, any carry is lost.
                codes[panel, i // 4, lane, i % 4] = np.uint8(weight[order[place], i]) ^ offset
