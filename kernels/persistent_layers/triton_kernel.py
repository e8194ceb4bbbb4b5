"""All layers of a step in one launch. See the package for the contract."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
import triton
import triton.language as tl

from kernels.batch import KEY_TILE, ROW_TILE, BatchMetadata
from kernels.batch_attention import COMBINED_ROWS, TAILS, attention_cut, num_splits
from kernels.batch_attention.triton_kernel import (
    BATCH_ARRAYS,
    LOG2_E,
    attend_share,
    combine_rows,
    combined_splits,
)
from kernels.device_limits import limits_of
from kernels.gate_up.triton_kernel import gate_up_tile
from kernels.persistent_layers import MOST_ROWS, PHASES, Flow, LayerTensors, are_alike
from kernels.persistent_layers.triton_barrier import wait_for_all
from kernels.product.tiles import num_blocks, require_scratch, stages_alone, tile_for
from kernels.product.triton_kernel import prefetch, readable_values
from kernels.project_qkv.triton_kernel import project_qkv_tile
from kernels.scratch import Scratch
from kernels.skinny_matmul.triton_kernel import skinny_matmul_tile
from kernels.weight import Weight

_ALIGNED = 16  # bytes, that kernels read at a time
_STAGES = {4: 1, 8: 2}  # of the attention, by the warps that share the registers
PLACES: tl.constexpr = tl.constexpr(13)  # of a layer's row, see `_addresses`


class ProductCut(NamedTuple):
    """What a product is compiled for, see `Tile`. A program takes `tiles` times `splits` in turn.

    Functions of kernels get the quantization as a constant of their caller's: out of a tuple it is a
    plain string in Triton 3.6, which no call takes.
    """

    outputs: int
    inputs: int
    quantization: str
    depth: int
    groups: int
    splits: int
    tile_outputs: int
    rows: int
    stages: int
    tiles: int


class AttentionShape(NamedTuple):
    """What attention is compiled for, see `attend_share` and `combine_rows`."""

    group: int
    kv_heads: int
    dim: int
    splits: int
    tails: int
    row_tile: int
    key_tile: int
    combined_rows: int
    chunk: int


@triton.jit
def _held(LAYER, PLACE: tl.constexpr, LIKE):
    """The tensor whose address stands at a place of a layer's row; its numbers are those of LIKE."""
    return tl.multiple_of(tl.load(LAYER + PLACE).to(LIKE.dtype), 16)


@triton.jit
def _held_scales(LAYER, PLACE: tl.constexpr, CUT: tl.constexpr, FLOATS, WORDS):
    """The scales of a product: numbers, or in the forms of model files words that hold several."""
    if CUT.quantization == "float" or CUT.quantization == "fp8" or CUT.quantization == "int4":
        scales = _held(LAYER, PLACE, FLOATS)
    else:
        scales = _held(LAYER, PLACE, WORDS)
    return scales


@triton.jit
def _meet(WORD, IS_WHOLE: tl.constexpr):
    """Go on when all programs are done with the phase; a launch of one phase ends with it."""
    if IS_WHOLE:
        wait_for_all(WORD)


@triton.jit
def _meet_before_product(WORD, VALUES, CUT: tl.constexpr, IS_WHOLE: tl.constexpr):
    """Likewise; the cache is asked for what this program's first tile of a product begins with."""
    _ask_ahead(VALUES, CUT, IS_WHOLE)
    _meet(WORD, IS_WHOLE)


@triton.jit
def _ask_ahead(VALUES, CUT: tl.constexpr, IS_WHOLE: tl.constexpr):
    """Ask the cache for the weights that this program's first tile of a product begins with."""
    QUANTIZATION: tl.constexpr = CUT.quantization
    program = tl.program_id(0)
    if IS_WHOLE and program < CUT.tiles * CUT.splits:
        prefetch(
            VALUES, program % CUT.tiles, program // CUT.tiles,
            CUT.outputs, CUT.inputs, QUANTIZATION, CUT.depth, CUT.splits, CUT.tile_outputs,
        )  # fmt: skip


@triton.jit
def _qkv_phase(
    NORMED, VALUES, SCALES, SQUARES, BIAS, COS_SIN, SEQUENCES, DEPTHS, BASES, LENGTHS, FIRST_ROWS,
    QUERIES, KEYS, CACHED_VALUES, PARTIALS, ARRIVED, key_head_stride, value_head_stride, eps,
    num_rows, ATTENTION: tl.constexpr, CUT: tl.constexpr,
):  # fmt: skip
    """This program's tiles of queries, keys and values."""
    QUANTIZATION: tl.constexpr = CUT.quantization
    HEADS: tl.constexpr = ATTENTION.group * ATTENTION.kv_heads
    program = tl.program_id(0)
    for start in tl.range(
        0, CUT.tiles * CUT.splits - program, tl.num_programs(0), disable_licm=True
    ):
        item = program + start
        project_qkv_tile(
            item % CUT.tiles, item // CUT.tiles, 0,
            NORMED, VALUES, SCALES, SQUARES, BIAS, COS_SIN, SEQUENCES, DEPTHS, BASES, LENGTHS,
            FIRST_ROWS, QUERIES, KEYS, CACHED_VALUES, PARTIALS, ARRIVED,
            key_head_stride, value_head_stride, eps, num_rows,
            HEADS, ATTENTION.kv_heads, ATTENTION.dim,
            CUT.outputs, CUT.inputs, QUANTIZATION, CUT.depth, CUT.groups, CUT.splits,
            CUT.tile_outputs, CUT.rows, CUT.stages, PDL=False,
        )  # fmt: skip


@triton.jit
def _attend_phase(
    QUERIES, KEYS, CACHED_VALUES, PARTIALS,
    PATHS, BASES, LENGTHS, FIRST_ROWS, NUM_ROWS, RUNS, DEPTHS,
    BLOCK_SEQUENCES, BLOCK_STARTS, BLOCK_FIRST_RUNS, BLOCK_END_RUNS,
    scale, head_stride, num_rows, num_row_blocks, ATTENTION: tl.constexpr,
):  # fmt: skip
    """This program's shares of the attention."""
    program, blocks = tl.program_id(0), num_row_blocks * ATTENTION.kv_heads
    shares = blocks * (ATTENTION.splits + ATTENTION.tails)
    for start in tl.range(0, shares - program, tl.num_programs(0), disable_licm=True):
        item = program + start
        attend_share(
            item % blocks, item // blocks, QUERIES, KEYS, CACHED_VALUES, PARTIALS,
            PATHS, BASES, LENGTHS, FIRST_ROWS, NUM_ROWS, RUNS, DEPTHS,
            BLOCK_SEQUENCES, BLOCK_STARTS, BLOCK_FIRST_RUNS, BLOCK_END_RUNS,
            scale, head_stride, num_rows,
            ATTENTION.group, ATTENTION.kv_heads, ATTENTION.dim, ATTENTION.splits,
            ATTENTION.tails, ATTENTION.row_tile, ATTENTION.key_tile, PDL=False,
        )  # fmt: skip


@triton.jit
def _combine_phase(
    PARTIALS, ATTENDED, LENGTHS, FIRST_ROWS, NUM_ROWS, BLOCK_SEQUENCES, BLOCK_STARTS,
    scale, num_row_blocks, ATTENTION: tl.constexpr,
):  # fmt: skip
    """This program's rows of the attention, of all their shares."""
    program, blocks = tl.program_id(0), num_row_blocks * ATTENTION.kv_heads
    pieces = blocks * (ATTENTION.row_tile // ATTENTION.combined_rows)
    for start in tl.range(0, pieces - program, tl.num_programs(0), disable_licm=True):
        item = program + start
        combine_rows(
            item % blocks, item // blocks, PARTIALS, ATTENDED,
            LENGTHS, FIRST_ROWS, NUM_ROWS, BLOCK_SEQUENCES, BLOCK_STARTS, scale,
            ATTENTION.group, ATTENTION.kv_heads, ATTENTION.dim, ATTENTION.splits,
            ATTENTION.row_tile, ATTENTION.key_tile, ATTENTION.combined_rows, ATTENTION.chunk,
            PDL=False,
        )  # fmt: skip


@triton.jit
def _residual_phase(
    INPUTS, VALUES, SCALES, RESIDUAL, NORM_WEIGHT, NORMED, SQUARES, PARTIALS, ARRIVED, num_rows,
    CUT: tl.constexpr,
):  # fmt: skip
    """This program's tiles of a product that is added to the residual stream."""
    QUANTIZATION: tl.constexpr = CUT.quantization
    program = tl.program_id(0)
    for start in tl.range(
        0, CUT.tiles * CUT.splits - program, tl.num_programs(0), disable_licm=True
    ):
        item = program + start
        skinny_matmul_tile(
            item % CUT.tiles, item // CUT.tiles, 0,
            INPUTS, VALUES, SCALES, RESIDUAL, NORM_WEIGHT, NORMED, SQUARES, PARTIALS, ARRIVED,
            num_rows, CUT.outputs, CUT.inputs, QUANTIZATION, CUT.depth, CUT.groups, CUT.splits,
            CUT.tile_outputs, CUT.rows, CUT.stages, PDL=False,
        )  # fmt: skip


@triton.jit
def _gate_up_phase(
    NORMED, VALUES, SCALES, SQUARES, HIDDEN, PARTIALS, ARRIVED, eps, num_rows, CUT: tl.constexpr
):
    """This program's tiles of gate and up."""
    QUANTIZATION: tl.constexpr = CUT.quantization
    program = tl.program_id(0)
    for start in tl.range(
        0, CUT.tiles * CUT.splits - program, tl.num_programs(0), disable_licm=True
    ):
        item = program + start
        gate_up_tile(
            item % CUT.tiles, item // CUT.tiles, 0,
            NORMED, VALUES, SCALES, SQUARES, HIDDEN, PARTIALS, ARRIVED, eps, num_rows,
            CUT.outputs, CUT.inputs, QUANTIZATION, CUT.depth, CUT.groups, CUT.splits,
            CUT.tile_outputs, CUT.rows, CUT.stages, PDL=False,
        )  # fmt: skip


@triton.jit(do_not_specialize=["num_rows", "num_row_blocks", "first_layer", "end_layer"],
            do_not_specialize_on_alignment=[*BATCH_ARRAYS, "SEQUENCES"])  # fmt: skip
def persistent_layers_kernel(
    LAYERS, QKV_VALUES, O_VALUES, GATE_UP_VALUES, DOWN_VALUES, COS_SIN,
    RESIDUAL, NORMED, SQUARES, QUERIES, ATTENDED, HIDDEN, PARTIALS, ARRIVED, WORD,
    PATHS, BASES, LENGTHS, FIRST_ROWS, NUM_ROWS, RUNS, DEPTHS, SEQUENCES,
    BLOCK_SEQUENCES, BLOCK_STARTS, BLOCK_FIRST_RUNS, BLOCK_END_RUNS,
    scale, eps, key_head_stride, value_head_stride,
    num_rows, num_row_blocks, first_layer, end_layer,
    QKV_CUT: tl.constexpr, O_CUT: tl.constexpr, GATE_UP_CUT: tl.constexpr, DOWN_CUT: tl.constexpr,
    ATTENTION: tl.constexpr, FIRST_PHASE: tl.constexpr, END_PHASE: tl.constexpr,
):  # fmt: skip
    """Layers first_layer..end_layer - 1, of each the phases FIRST_PHASE..END_PHASE - 1.

    LAYERS int64 [layers, places]: the addresses of each layer's tensors, see `_addresses`. Of the
    values of a layer's four matrices the type alone is used.
    Programs can wait for each other where they run at the same time: so it is where all phases are.
    """
    IS_WHOLE: tl.constexpr = END_PHASE - FIRST_PHASE > 1
    # What one phase computes once and for all would take registers from all others.
    for index in tl.range(first_layer, end_layer, disable_licm=True):
        layer = LAYERS + index * PLACES
        keys, values = _held(layer, 11, QUERIES), _held(layer, 12, QUERIES)
        if FIRST_PHASE <= 0 and END_PHASE > 0:
            _qkv_phase(
                NORMED, _held(layer, 0, QKV_VALUES),
                _held_scales(layer, 1, QKV_CUT, SQUARES, WORD), SQUARES,
                _held(layer, 2, SQUARES), COS_SIN, SEQUENCES, DEPTHS, BASES, LENGTHS, FIRST_ROWS,
                QUERIES, keys, values, PARTIALS, ARRIVED, key_head_stride, value_head_stride, eps,
                num_rows, ATTENTION, QKV_CUT,
            )  # fmt: skip
        _meet_before_product(WORD, _held(layer, 3, O_VALUES), O_CUT, IS_WHOLE)
        if FIRST_PHASE <= 1 and END_PHASE > 1:
            _attend_phase(
                QUERIES, keys, values, PARTIALS,
                PATHS, BASES, LENGTHS, FIRST_ROWS, NUM_ROWS, RUNS, DEPTHS,
                BLOCK_SEQUENCES, BLOCK_STARTS, BLOCK_FIRST_RUNS, BLOCK_END_RUNS,
                scale, key_head_stride, num_rows, num_row_blocks, ATTENTION,
            )  # fmt: skip
        _meet(WORD, IS_WHOLE)
        if FIRST_PHASE <= 2 and END_PHASE > 2:
            _combine_phase(
                PARTIALS, ATTENDED, LENGTHS, FIRST_ROWS, NUM_ROWS, BLOCK_SEQUENCES, BLOCK_STARTS,
                scale, num_row_blocks, ATTENTION,
            )  # fmt: skip
        _meet(WORD, IS_WHOLE)
        if FIRST_PHASE <= 3 and END_PHASE > 3:
            _residual_phase(
                ATTENDED, _held(layer, 3, O_VALUES),
                _held_scales(layer, 4, O_CUT, SQUARES, WORD), RESIDUAL,
                _held(layer, 5, SQUARES), NORMED, SQUARES, PARTIALS, ARRIVED, num_rows, O_CUT,
            )  # fmt: skip
        _meet_before_product(WORD, _held(layer, 6, GATE_UP_VALUES), GATE_UP_CUT, IS_WHOLE)
        if FIRST_PHASE <= 4 and END_PHASE > 4:
            _gate_up_phase(
                NORMED, _held(layer, 6, GATE_UP_VALUES),
                _held_scales(layer, 7, GATE_UP_CUT, SQUARES, WORD), SQUARES, HIDDEN,
                PARTIALS, ARRIVED, eps, num_rows, GATE_UP_CUT,
            )  # fmt: skip
        _meet_before_product(WORD, _held(layer, 8, DOWN_VALUES), DOWN_CUT, IS_WHOLE)
        if FIRST_PHASE <= 5 and END_PHASE > 5:
            _residual_phase(
                HIDDEN, _held(layer, 8, DOWN_VALUES),
                _held_scales(layer, 9, DOWN_CUT, SQUARES, WORD), RESIDUAL,
                _held(layer, 10, SQUARES), NORMED, SQUARES, PARTIALS, ARRIVED, num_rows, DOWN_CUT,
            )  # fmt: skip
        if index + 1 < end_layer:
            _meet_before_product(WORD, _held(layer, PLACES, QKV_VALUES), QKV_CUT, IS_WHOLE)


@dataclass(frozen=True, slots=True)
class PersistentLayers:
    """The layers of a model on one device.

    `addresses` int64 [layers, 13]. `word` int32 [1] is what programs meet by. `is_whole`: all phases
    are one launch; Triton's interpreter, which runs one program after the other, takes each for
    itself.
    """

    layers: tuple[LayerTensors, ...]
    addresses: torch.Tensor
    word: torch.Tensor
    num_programs: int
    is_whole: bool = True

    @classmethod
    def place(
        cls, layers: Sequence[LayerTensors], num_programs: int, *, is_whole: bool = True
    ) -> Self:
        """Write down where the layers' tensors are, which must stay there.

        Raises ValueError where layers differ, so that no one loop is for all, or where one of their
        tensors is not where kernels read 16 bytes at a time.
        """
        if not are_alike(layers):
            raise ValueError("layers of several kinds cannot be one launch")
        device = layers[0].keys.device
        rows = [_addresses(layer) for layer in layers]
        if any(address % _ALIGNED for row in rows for address in row):
            raise ValueError(f"a tensor of a layer starts amid {_ALIGNED} bytes")
        word = torch.zeros(1, dtype=torch.int32, device=device)
        return cls(tuple(layers), torch.tensor(rows, device=device), word, num_programs, is_whole)

    def takes(self, rows: int) -> bool:
        """Whether it is for steps of so many rows."""
        return rows <= MOST_ROWS

    def run(
        self, flow: Flow, cos_sin: torch.Tensor, batch: BatchMetadata, scratch: Scratch
    ) -> None:
        """One launch, or one for each phase of each layer."""
        count, phases = len(self.layers), len(PHASES)
        if self.is_whole:
            self._launch(flow, cos_sin, batch, scratch, range(count), range(phases))
            return
        for layer in range(count):
            for phase in range(phases):
                self._launch(
                    flow, cos_sin, batch, scratch, range(layer, layer + 1), range(phase, phase + 1)
                )

    def _launch(
        self,
        flow: Flow,
        cos_sin: torch.Tensor,
        batch: BatchMetadata,
        scratch: Scratch,
        layers: range,
        phases: range,
    ) -> None:
        first, stream, rows = self.layers[0], flow.stream, flow.rows
        attention = _attention_shape(first, flow)
        num_warps = attention_cut(limits_of(first.keys.device), attention.dim).num_warps
        options: dict[str, Any] = {"launch_cooperative_grid": True} if self.is_whole else {}
        persistent_layers_kernel[(self.num_programs,)](
            self.addresses, *map(readable_values, first.products), cos_sin,
            stream.residual, stream.normed, stream.squares,
            flow.queries, flow.attended, flow.hidden,
            scratch.partials, scratch.arrived, self.word,
            batch.paths, batch.bases, batch.lengths, batch.first_rows, batch.num_rows, batch.runs,
            batch.depths, batch.sequences, batch.block_sequences, batch.block_starts,
            batch.block_first_runs, batch.block_end_runs,
            LOG2_E / attention.dim**0.5, stream.eps, first.keys.stride(0),
            first.values.stride(0), rows, batch.num_blocks, layers.start, layers.stop,
            *(_product_cut(weight, rows, scratch) for weight in first.products),
            attention, phases.start, phases.stop,
            num_warps=num_warps, num_stages=_STAGES[num_warps], enable_fp_fusion=False, **options,
        )  # fmt: skip


def _addresses(layer: LayerTensors) -> tuple[int, ...]:
    """A layer's row: of each product values, scales and the vector that goes with it; the cache."""
    qkv, o, gate_up, down = (
        (readable_values(one).data_ptr(), 0 if one.scales is None else one.scales.data_ptr())
        for one in layer.products
    )
    return (
        *qkv, layer.qkv_bias.data_ptr(),
        *o, layer.gate_up_norm_weight.data_ptr(),
        *gate_up,
        *down, layer.next_norm_weight.data_ptr(),
        layer.keys.data_ptr(), layer.values.data_ptr(),
    )  # fmt: skip


def _attention_shape(layer: LayerTensors, flow: Flow) -> AttentionShape:
    (_, heads, dim), kv_heads = flow.queries.shape, layer.keys.shape[0]
    splits = num_splits(kv_heads)
    return AttentionShape(
        group=heads // kv_heads,
        kv_heads=kv_heads,
        dim=dim,
        splits=splits,
        tails=TAILS,
        row_tile=ROW_TILE,
        key_tile=KEY_TILE,
        combined_rows=COMBINED_ROWS,
        chunk=combined_splits(splits, dim, COMBINED_ROWS),
    )


def _product_cut(weight: Weight, rows: int, scratch: Scratch) -> ProductCut:
    """As the product's own kernel is cut, but for the stages, which decide no bit."""
    require_scratch(scratch, weight, rows)
    outputs, inputs, quantization = weight.num_outputs, weight.num_inputs, weight.quantization
    limits = limits_of(weight.values.device)
    tile = tile_for(outputs, inputs, rows, quantization, limits=limits)
    return ProductCut(
        outputs=outputs,
        inputs=inputs,
        quantization=quantization,
        depth=tile.depth,
        groups=tile.groups,
        splits=tile.splits,
        tile_outputs=tile.outputs,
        rows=tile.rows,
        stages=stages_alone(tile, quantization, limits),
        tiles=num_blocks(outputs, tile.outputs),
    )
