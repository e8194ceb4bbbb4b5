"""How a product is cut into tiles, for the kernels and for their working memory."""

from dataclasses import dataclass

from kernels.device_limits import LIMITS, DeviceLimits
from kernels.scratch import Scratch, ScratchSize
from kernels.weight import Quantization, Weight, code_bytes

BLOCK_OUTPUTS = 64  # the weights' side of the tensor cores' instruction
_WIDE_OUTPUTS = 128  # halve how often the rows are read, which at many rows is most of the traffic
_WIDE_FORMS = ("float", "fp8", "int4")
_LEAST_WIDE_PROGRAMS = 96  # fewer leave over a quarter of an H200's 132 multiprocessors idle
_MOST_WIDE_SPLITS = 4  # as 7b's have: the sums of six spill half a kilobyte a thread, on sm_90
_WIDE_STEP = 64  # inputs, of floats: six iterations fit where three of 128 would
_PROGRAMS = 264  # two on each of the 132 multiprocessors of an H100 or H200
_MOST_SPLITS = 8  # the last program reads the sums of all of them
_SPLIT_INPUTS = 256  # inputs of a split: with fewer, its sums cost more than it wins
# Rows of a program; the largest go with wide outputs. Measured on an H200, bfloat16: the large products
# of 7b take 32 rows in 0.75 of the time that a tile of 64 takes, and 256 in 0.67 of it by tiles of 128.
ROW_TILES = (16, 32, 64, 128)
# Each of its 16 sums of an iteration takes a place of its own in tensor memory, which then is full.
_NARROW_IN_TENSOR_MEMORY: Quantization = "q6_k_min"
_MOST_STAGES = 8  # iterations under way, even if shared memory has room for more
_LEAST_DEPTH = 16  # of the tensor cores' instruction
_GROUPED_DEPTHS = (128, 64)  # of weights in groups: the largest of which the inputs are multiples
_INT4_GROUPS = 2  # of an iteration, whose scales are loaded together
_SHORT_ITERATIONS = 8  # programs with fewer fill no deep pipeline, so more of them run together


@dataclass(frozen=True, slots=True)
class Tile:
    """What a program computes. `depth` and `splits` decide a row's bits, the others do not."""

    depth: int  # inputs of which a split has whole blocks
    splits: int  # programs that share the same outputs
    rows: int  # that share a program
    num_stages: int  # iterations whose loads are under way
    num_warps: int
    outputs: int
    step: int  # inputs of an iteration


def tile_for(
    num_outputs: int,
    num_inputs: int,
    rows: int,
    quantization: Quantization,
    *,
    whole: bool = False,
    limits: DeviceLimits = LIMITS[90],
) -> Tile:
    """Cut a product of N outputs and K inputs; `whole` keeps the inputs in one range.

    `depth` and `splits` follow N, K and the quantization: a row has the same bits at any `rows`.
    """
    splits = 1 if whole else _splits(num_outputs, num_inputs)
    depth = _depth(num_inputs, splits, quantization)
    tile_rows = _row_tile(num_outputs, splits, rows, quantization, limits)
    is_wide = tile_rows == ROW_TILES[-1]
    outputs = _WIDE_OUTPUTS if is_wide else BLOCK_OUTPUTS
    step = _step(depth, quantization, is_wide=is_wide)
    programs = num_blocks(num_outputs, outputs) * splits
    # What is unpacked waits for itself, so more programs help there whatever the inputs.
    is_short = quantization != "float" or num_inputs <= _SHORT_ITERATIONS * step
    most_programs = 4 if is_short and programs >= 2 * _PROGRAMS else 2
    if is_wide:  # one with six stages takes 0.92 of the time of two with three each
        most_programs = 1
    stage_bytes = int(step * (outputs * code_bytes(quantization) + tile_rows * 2))
    return Tile(
        depth=depth, splits=splits, rows=tile_rows,
        num_stages=_stages(stage_bytes, limits, most_programs),
        num_warps=8 if is_wide else 4, outputs=outputs, step=step,
    )  # fmt: skip


def scratch_size(weight: Weight, rows: int) -> ScratchSize:
    """Return what a product of up to `rows` rows needs on any device: nothing where it is not split."""
    tile = tile_for(weight.num_outputs, weight.num_inputs, rows, weight.quantization)
    if tile.splits == 1:
        return ScratchSize(0, 0)
    outputs = num_blocks(weight.num_outputs, _WIDE_OUTPUTS) * _WIDE_OUTPUTS
    counters = num_blocks(weight.num_outputs) * num_blocks(rows, ROW_TILES[0])
    size = next((size for size in ROW_TILES if rows <= size), ROW_TILES[-1])
    return ScratchSize(outputs * tile.splits * size * num_blocks(rows, size), counters)


def require_scratch(scratch: Scratch, weight: Weight, rows: int) -> None:
    """Raise ValueError where the sums of the splits would not fit."""
    wanted = scratch_size(weight, rows)
    there = ScratchSize(scratch.partials.numel(), scratch.arrived.numel())
    if any(one < other for one, other in zip(there, wanted, strict=True)):
        raise ValueError(f"a product wants {wanted}, got {there}")


def num_blocks(count: int, size: int = BLOCK_OUTPUTS) -> int:
    """Blocks of 64 outputs, or of as many outputs or rows as said, the last perhaps partly filled."""
    return -(-count // size)


def _splits(num_outputs: int, num_inputs: int) -> int:
    """As many as fill a large GPU, whatever the GPU, as a row's bits follow them."""
    tiles = num_blocks(num_outputs)
    return max(1, min(_PROGRAMS // tiles, _MOST_SPLITS, num_inputs // _SPLIT_INPUTS))


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


def _row_tile(
    num_outputs: int, splits: int, rows: int, quantization: Quantization, limits: DeviceLimits
) -> int:
    """The smallest tile that takes all rows: row counts of one tile share a binary.

    The largest only where enough programs remain; the blocks of files would take too many registers.
    """
    if limits.has_tensor_memory and quantization == _NARROW_IN_TENSOR_MEMORY:
        return ROW_TILES[0]
    *small, large = ROW_TILES
    programs = num_blocks(num_outputs, _WIDE_OUTPUTS) * splits * num_blocks(rows, large)
    is_roomy = limits.is_wide and quantization in _WIDE_FORMS and splits <= _MOST_WIDE_SPLITS
    last = large if is_roomy and programs >= _LEAST_WIDE_PROGRAMS else small[-1]
    return next((size for size in small if rows <= size), last)


def _step(depth: int, quantization: Quantization, *, is_wide: bool) -> int:
    """Inputs of an iteration. A chain's order, and so its bits, do not follow them."""
    if quantization == "int4":
        return _INT4_GROUPS * depth
    return min(depth, _WIDE_STEP) if is_wide and quantization == "float" else depth


def _stages(stage_bytes: int, limits: DeviceLimits, most_programs: int) -> int:
    """As many as fit, with as many programs on a multiprocessor as leave each what it needs."""
    ahead = 0 if limits.has_warp_groups else 1
    for programs in (one for one in (4, 2, 1) if one <= most_programs):
        stages = limits.share(programs) // stage_bytes + ahead
        if stages >= 2:
            return min(stages, _MOST_STAGES)
    raise ValueError(f"a tile of {stage_bytes:,} bytes does not fit {limits}")
