"""How a product is cut: the table that both the kernels and their working memory follow."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from kernels.scratch import Scratch, ScratchSize
from kernels.weight import Quantization, Weight, code_bytes

BLOCK_OUTPUTS = 64  # the weights' side of the tensor cores' instruction
_PROGRAMS = 264  # two on each of the 132 multiprocessors of an H100 or H200
_MOST_SPLITS = 8  # the last program reads the sums of all of them
_SPLIT_INPUTS = 256  # fewer in a split cost more in sums than they win
_ROW_TILES = (16, 32, 64, 128)
_SHARED_OF_ROWS = {16: 110_000, 32: 110_000, 64: 110_000, 128: 220_000}  # bytes of a program
_MOST_STAGES = 8
_LEAST_DEPTH = 16  # of the tensor cores' instruction
_GROUPED_DEPTHS = (128, 64)  # of weights in groups: the largest of which the inputs are multiples


@dataclass(frozen=True, slots=True)
class Tile:
    """What a program computes. `depth` and `splits` decide a row's bits, the others do not."""

    depth: int  # inputs of an iteration
    splits: int  # programs that share 64 outputs
    rows: int  # the row capacity, R, rounded up
    num_stages: int  # iterations whose loads are under way
    num_warps: int


_overriding: ContextVar[Tile | None] = ContextVar("_overriding", default=None)


@contextmanager
def overridden(tile: Tile) -> Iterator[None]:
    """Cut every product so, to measure what another cut gives."""
    token = _overriding.set(tile)
    try:
        yield
    finally:
        _overriding.reset(token)


def tile_for(
    num_outputs: int, num_inputs: int, rows: int, quantization: Quantization, *, whole: bool = False
) -> Tile:
    """Cut a product of N outputs and K inputs; `whole` keeps the inputs in one range.

    `depth` and `splits` follow N, K and the quantization: a row has the same bits at any `rows`.
    """
    if (tile := _overriding.get()) is not None:
        return tile
    tiles = num_blocks(num_outputs)
    splits = 1 if whole else min(_PROGRAMS // tiles, _MOST_SPLITS, num_inputs // _SPLIT_INPUTS)
    splits = max(splits, 1)
    depth = _depth(num_inputs, splits, quantization)
    row_tile = next(tile for tile in _ROW_TILES if rows <= tile)
    stage_bytes = int(depth * (BLOCK_OUTPUTS * code_bytes(quantization) + row_tile * 2))
    stages = min(_SHARED_OF_ROWS[row_tile] // stage_bytes, _MOST_STAGES)
    return Tile(depth, splits, row_tile, stages, num_warps=8 if row_tile == _ROW_TILES[-1] else 4)


def scratch_size(weight: Weight, rows: int) -> ScratchSize:
    """Return what a product of up to `rows` rows needs: nothing where it is not split."""
    tile = tile_for(weight.num_outputs, weight.num_inputs, rows, weight.quantization)
    if tile.splits == 1:
        return ScratchSize(0, 0)
    tiles = num_blocks(weight.num_outputs)
    return ScratchSize(tiles * tile.splits * BLOCK_OUTPUTS * tile.rows, tiles)


def require_scratch(scratch: Scratch, weight: Weight, rows: int) -> None:
    """Raise ValueError where the sums of the splits would not fit."""
    wanted = scratch_size(weight, rows)
    there = ScratchSize(scratch.partials.numel(), scratch.arrived.numel())
    if there.num_partials < wanted.num_partials or there.num_counters < wanted.num_counters:
        raise ValueError(f"a product wants {wanted}, got {there}")


def num_blocks(num_outputs: int) -> int:
    """Blocks of 64 outputs, the last perhaps partly filled."""
    return -(-num_outputs // BLOCK_OUTPUTS)


def _depth(num_inputs: int, splits: int, quantization: Quantization) -> int:
    """Return 128, of which weights in groups have multiples, or 64 as the blocks of q8_0 may be.

    Of others less where a split would have fewer than four iterations.
    """
    if quantization not in ("float", "fp8"):
        return next(depth for depth in _GROUPED_DEPTHS if num_inputs % depth == 0)
    depth = 128 if num_inputs // splits >= 4 * 128 else 64
    while depth >= 2 * num_inputs and depth > _LEAST_DEPTH:
        depth //= 2
    return depth
