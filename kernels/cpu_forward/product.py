"""Rows of 8-bit codes times one panel of 8-bit weights, tile after tile."""

from typing import Any

from kernels.compiled import inner_njit
from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.tiles import (
    GROUP,
    PANEL,
    emit_product,
    product_rows,
    product_width,
    tile,
)

_MOST = product_rows(host_unit())
_WIDTH = product_width(host_unit())
_PIECES = PANEL // _WIDTH


def _tile_of(rows: int) -> Any:
    emitted = tile(emit_product, min(rows, _MOST))

    @inner_njit
    def multiply(codes, panel, starts, scales, sums, groups, soon, soon_bytes, number):
        half = groups * GROUP * PANEL // 2
        for piece in range(_PIECES):
            skip = 4 * piece * _WIDTH
            wanted = soon + (0 if soon_bytes == 4 * PANEL else (number + piece) % 2 * half)
            emitted((codes, panel + skip, starts, scales, sums + skip, groups, wanted, soon_bytes))

    return multiply


assert _MOST <= 6, "a tile of more rows needs a function below"  # noqa: S101 - of our own table

# One function for each number of rows: how many sums a tile keeps is part of its code.
_one, _two, _three, _four, _five, _six = (_tile_of(rows) for rows in range(1, 7))


@inner_njit
def multiply_panel(codes, num_rows, matrix, layer, panel, following, sums):
    """Set `sums` float32 [num_rows, PANEL]: codes times weights, without the weights' scale.

    Meanwhile the panel `following` is fetched, if there is one: what stands in memory arrives while
    what has arrived is multiplied.
    """
    groups = codes.scales.shape[1]
    at = matrix.codes[layer, panel].ctypes.data
    soon = at
    if following < matrix.codes.shape[1]:
        soon = matrix.codes[layer, following].ctypes.data
    # The panel is read by one tile after the other, or by one alone, which then asks for all of it.
    soon_bytes = 4 * PANEL if num_rows <= _MOST and _PIECES == 1 else 2 * PANEL
    row = 0
    for number in range(-(-num_rows // _MOST)):
        rows = _rows_of_tile(num_rows - row)
        values, starts = codes.values[row:].ctypes.data, codes.starts[row:].ctypes.data
        scales, out = codes.scales[row:].ctypes.data, sums[row:].ctypes.data
        if rows == 1:
            _one(values, at, starts, scales, out, groups, soon, soon_bytes, number)
        elif rows == 2:
            _two(values, at, starts, scales, out, groups, soon, soon_bytes, number)
        elif rows == 3:
            _three(values, at, starts, scales, out, groups, soon, soon_bytes, number)
        elif rows == 4:
            _four(values, at, starts, scales, out, groups, soon, soon_bytes, number)
        elif rows == 5:
            _five(values, at, starts, scales, out, groups, soon, soon_bytes, number)
        else:
            _six(values, at, starts, scales, out, groups, soon, soon_bytes, number)
        row += rows


@inner_njit
def _rows_of_tile(left):
    """As many as fit; what is more than fits one tile and less than two is halved."""
    if left <= _MOST or left >= 2 * _MOST:
        return min(left, _MOST)
    return (left + 1) // 2
