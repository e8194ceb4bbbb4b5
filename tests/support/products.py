"""The four skinny products on random numbers: arguments between guards of NaN, and results."""

from collections.abc import Callable
from dataclasses import replace

import torch

from kernels.batch import BatchMetadata
from kernels.lm_head import Best, SamplingNoise
from kernels.product.tiles import num_blocks, scratch_size
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Quantization, Weight, pack
from tests.support.batches import Tree, build_batch, chain, preorder_parents
from tests.support.block_weights import BLOCK_FORMS, random_blocks

EPS = 1e-6
GUARD = 4096  # NaNs before and behind a tensor
MOST_ROWS = 128
LONG_ROWS = 200  # rows; several programs share a tile's outputs
# GPU tiles are cut for bfloat16: those of float32 would not fit.
DTYPES = [torch.bfloat16] if torch.cuda.is_available() else [torch.bfloat16, torch.float32]
QUANTIZATIONS: tuple[Quantization, ...] = ("float", "fp8", "int4")  # those that `pack` makes
Written = dict[str, torch.Tensor]


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same numbers between memory full of NaN."""
    count = tensor.numel()
    held = torch.full((GUARD + count + GUARD,), torch.nan, device=tensor.device).to(tensor.dtype)
    held[GUARD : GUARD + count] = tensor.flatten()
    return held[GUARD : GUARD + count].view(tensor.shape)


def unwritten(*shape: int, like: torch.Tensor) -> torch.Tensor:
    """Return memory full of NaN for a kernel to fill."""
    return poisoned(torch.full(shape, torch.nan, dtype=like.dtype, device=like.device))


def is_intact(tensor: torch.Tensor) -> bool:
    """Whether the memory around a `poisoned` tensor still holds NaN."""
    held = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    return bool(held[:GUARD].isnan().all() and held[-GUARD:].isnan().all())


def random_rows(
    rows: int | range, width: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Return `rows` rows, or those of a range: row r is the same whatever the others are."""
    rows = range(rows) if isinstance(rows, int) else rows
    generator = torch.Generator().manual_seed(width)
    held = torch.randn(LONG_ROWS, width, generator=generator)[rows.start : rows.stop]
    return poisoned(held.to(device, dtype))


def random_weight(
    outputs: int, inputs: int, quantization: Quantization, dtype: torch.dtype, device: torch.device
) -> Weight:
    """Make a matrix whose products with rows of unit variance have about unit variance."""
    if quantization in BLOCK_FORMS:
        return random_blocks(outputs, inputs, quantization, device)
    generator = torch.Generator().manual_seed(outputs + inputs)
    matrix = torch.randn(outputs, inputs, generator=generator) / inputs**0.5
    weight = pack(matrix.to(device, dtype), quantization)
    values = weight.values if quantization == "int4" else poisoned(weight.values)
    return Weight(quantization, values, None if weight.scales is None else poisoned(weight.scales))


def scratch_for(weight: Weight, rows: int) -> Scratch:
    """Return as much scratch as the product needs, its sums poisoned."""
    size = scratch_size(weight, rows)
    scratch = Scratch.allocate(*size, weight.values.device)
    scratch.partials.fill_(torch.nan)
    return scratch


def stream_of(normed: torch.Tensor) -> ResidualStream:
    """Return a stream for reading `normed` and `squares`, without `residual`."""
    return ResidualStream(unwritten(*normed.shape, like=normed), normed, squares_of(normed), EPS)


def squares_of(rows: torch.Tensor) -> torch.Tensor:
    """Return the `squares` of a residual stream with these rows."""
    count, width = rows.shape
    padded = torch.zeros(count, num_blocks(width) * 64, device=rows.device)
    padded[:, :width] = rows.float() ** 2
    return poisoned(padded.view(count, -1, 64).sum(dim=2).T.contiguous())


def formula(operation: Callable[..., None]) -> Callable[..., None]:
    """Return PyTorch's version of a product, which multiplies and adds in float64."""

    def run(inputs: torch.Tensor | ResidualStream, weight: Weight, *others: object) -> None:
        operation(_wide(inputs), Weight("float", weight.dense().double(), None), *others)

    return run


def _wide(inputs: torch.Tensor | ResidualStream) -> torch.Tensor | ResidualStream:
    if isinstance(inputs, ResidualStream):
        return replace(inputs, normed=inputs.normed.double())
    return inputs.double()


def run_skinny_matmul(
    operation: Callable[..., None], weight: Weight, rows: int | range, dtype: torch.dtype
) -> Written:
    """Run the product; all results have rows first, so that they can be compared."""
    device = weight.values.device
    inputs = random_rows(rows, weight.num_inputs, dtype, device)
    residual = random_rows(rows, weight.num_outputs, torch.float32, device)
    norm_weight = random_rows(1, weight.num_outputs, torch.float32, device)[0]
    normed = unwritten(len(inputs), weight.num_outputs, like=inputs)
    squares = unwritten(num_blocks(weight.num_outputs), len(inputs), like=residual)
    scratch = scratch_for(weight, len(inputs))
    operation(inputs, weight, norm_weight, ResidualStream(residual, normed, squares, EPS), scratch)
    assert not scratch.arrived.any()
    assert all(map(is_intact, (residual, normed, squares)))
    return {"residual": residual, "normed": normed, "squares": squares.T}


def run_gate_up(
    operation: Callable[..., None], weight: Weight, rows: int | range, dtype: torch.dtype
) -> Written:
    normed = random_rows(rows, weight.num_inputs, dtype, weight.values.device)
    out = unwritten(len(normed), weight.num_outputs // 2, like=normed)
    scratch = scratch_for(weight, len(normed))
    operation(stream_of(normed), weight, out, scratch)
    assert not scratch.arrived.any()
    assert is_intact(out)
    return {"out": out}


def run_lm_head(
    operation: Callable[..., None],
    weight: Weight,
    rows: int,
    dtype: torch.dtype,
    noise: SamplingNoise | None = None,
    *,
    keep_logits: bool = False,
) -> Written:
    normed = random_rows(rows, weight.num_inputs, dtype, weight.values.device)
    stream = stream_of(normed)
    blocks = num_blocks(weight.num_outputs)
    scores, best_logits, maxima, sums = (
        unwritten(blocks, rows, like=stream.squares) for _ in range(4)
    )
    ids = torch.full((blocks, rows), -1, dtype=torch.int32, device=normed.device)
    logits = unwritten(rows, weight.num_outputs, like=stream.squares) if keep_logits else None
    operation(stream, weight, noise, Best(scores, ids, best_logits, maxima, sums), logits)
    floats = {"scores": scores, "best_logits": best_logits, "maxima": maxima, "sums": sums}
    assert all(map(is_intact, floats.values()))
    written = {name: part.T for name, part in floats.items()} | {"ids": ids.T}
    return written if logits is None else written | {"logits": logits}


def random_noise(rows: int, device: torch.device) -> SamplingNoise:
    """Return noise in which every third row is greedy."""
    generator = torch.Generator().manual_seed(5)
    keys = torch.randint(-(2**31), 2**31, (MOST_ROWS, 2), generator=generator)[:rows]
    sampled = torch.arange(rows) % 3 > 0
    scales = torch.where(sampled, 1 / 0.7, 1.0)
    return SamplingNoise(
        poisoned(scales.to(device)),
        poisoned(sampled.float().to(device)),
        keys.to(device, torch.int32),
    )


def run_project_qkv(
    operation: Callable[..., None],
    weight: Weight,
    rows: int | range,
    dtype: torch.dtype,
    shape: tuple[int, int, int],
) -> Written:
    """Run the product; `shape` is heads, kv heads and numbers of a head.

    A range of rows is a piece of a text. Otherwise each row is of one of two sequences, or padding.
    """
    heads, kv_heads, dim = shape
    device = weight.values.device
    if isinstance(rows, range):
        batch, positions = one_sequence(rows, device)
    else:
        batch, positions = two_sequences(rows, device)
    normed = random_rows(rows, weight.num_inputs, dtype, device)
    bias = random_rows(1, weight.num_outputs, torch.float32, device)[0]
    angles = torch.rand(LONG_ROWS, dim // 2, generator=torch.Generator().manual_seed(3)) * 6
    cos_sin = poisoned(torch.cat([angles.cos(), angles.sin()], dim=1).to(device))
    queries = unwritten(len(normed), heads, dim, like=normed)
    keys, values = (unwritten(kv_heads, LONG_ROWS, dim, like=normed) for _ in range(2))
    scratch = scratch_for(weight, len(normed))
    written = (queries, keys, values)
    operation(stream_of(normed), weight, bias, cos_sin, batch, *written, scratch)
    assert not scratch.arrived.any()
    assert all(map(is_intact, written))
    kept = torch.zeros(LONG_ROWS, dtype=torch.bool, device=device)
    kept[positions] = True
    assert keys[:, ~kept].isnan().all(), "only the rows' own positions are written"
    assert values[:, ~kept].isnan().all(), "only the rows' own positions are written"
    at_rows = {"keys": keys[:, positions], "values": values[:, positions]}
    return {"queries": queries} | {name: held.transpose(0, 1) for name, held in at_rows.items()}


def one_sequence(rows: range, device: torch.device) -> tuple[BatchMetadata, torch.Tensor]:
    """Return a chain behind the tokens before it, and its arena positions."""
    batch = build_batch([Tree(chain(len(rows)), length=rows.start)], device=device)
    return batch, torch.arange(rows.start, rows.stop, device=device)


def two_sequences(rows: int, device: torch.device) -> tuple[BatchMetadata, torch.Tensor]:
    """Return two rows of a sequence, then those of another, none in the rows from 100 on.

    Also returns the arena positions of the rows in use.
    """
    count = min(rows, 100)
    first = Tree(chain(min(rows, 2)), length=30, base=3)
    second = Tree(preorder_parents(0, rows=count - 2), length=9, base=60) if rows > 2 else None
    row = torch.arange(count, device=device)
    positions = torch.where(row < 2, 33 + row, 69 + row - 2)
    return build_batch([first, second], capacity=rows, device=device), positions
