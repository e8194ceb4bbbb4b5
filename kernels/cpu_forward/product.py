"""Rows of 8-bit codes times one panel of 8-bit weights, tile after tile."""

from typing import Any

from numba import njit

from kernels.cpu_forward.tiles import (
    PANEL,
    emit_product,
    host_unit,
    product_rows,
    product_width,
    tile,
)

_MOST = product_rows(host_unit())
_WIDTH = product_width(host_unit())


def _tile_of(rows: int) -> Any:
    emitted = tile(emit_product, min(rows, _MOST))

    @njit
    def multiply(codes, panel, starts, scales, sums, groups):
        for piece in range(PANEL // _WIDTH):
            skip = 4 * piece * _WIDTH
            emitted((codes, panel + skip, starts, scales, sums + skip, groups))

    return multiply


# One function for each number of rows: how many sums a tile keeps is part of its code.
_one, _two, _three, _four, _five, _six = (_tile_of(rows) for rows in range(1, 7))


@njit
def multiply_panel(codes, num_rows, matrix, layer, panel, sums):
    """Set `sums` float32 [num_rows, PANEL]: codes times weights, without the weights' scale."""
    groups = codes.scales.shape[1]
    at = matrix.codes[layer, panel].ctypes.data
    row = 0
    while row < num_rows:
        rows = _rows_of_tile(num_rows - row)
        values, starts = codes.values[row:].ctypes.data, codes.starts[row:].ctypes.data
        scales, out = codes.scales[row:].ctypes.data, sums[row:].ctypes.data
        if rows == 1:
            _one(values, at, starts, scales, out, groups)
        elif rows == 2:
            _two(values, at, starts, scales, out, groups)
        elif rows == 3:
            _three(values, at, starts, scales, out, groups)
        elif rows == 4:
            _four(values, at, starts, scales, out, groups)
        elif rows == 5:
            _five(values, at, starts, scales, out, groups)
        else:
            _six(values, at, starts, scales, out, groups)
        row += rows


@njit
def _rows_of_tile(left):
    """As many as fit; what is more than fits one tile and less than two is halved."""
    if left <= _MOST or left >= 2 * _MOST:
        return min(left, _MOST)
    return (left + 1) // 2
