"""How long a step should take on a card: arithmetic from shapes and data sheets, no measurement.

    kernel = max(bytes / memory, bytes through the cache / cache) + gap + latency,   step = their sum

Gaps and latencies are those that others report for kernels in a CUDA graph, from the lucky to the
unlucky. `foregram bench gpu` measures what this only computes.
"""

from dataclasses import dataclass

from engine.model.gpu.cards import GraphicsCard
from engine.model.gpu.weights import head_quantization
from engine.model.model_config import ModelConfig
from kernels.batch import KEY_TILE, ROW_TILE
from kernels.batch_attention import num_splits
from kernels.device_limits import limits_for
from kernels.product.tiles import num_blocks, tile_for
from kernels.weight import BYTES_OF_WEIGHT, Quantization

_US, _MS = 1e6, 1e3
_FEW_ROWS = 16  # of a partial sum at least


@dataclass(frozen=True, slots=True)
class Overheads:
    """Microseconds beside the bytes of a kernel; `filled` is the share of the bandwidth it keeps."""

    gap: float  # between two kernels
    product: float
    split: float  # for the sums of a split product to meet
    attend: float
    combine: float
    run: float  # for each further branch of a tree
    choose: float
    other: float  # commit, embedding, walk and both copies together
    filled: float


LUCKY = Overheads(1.0, 1.5, 1.0, 3.0, 2.0, 1.2, 5.0, 14.0, 0.93)
UNLUCKY = Overheads(1.3, 2.5, 2.0, 5.0, 3.5, 2.0, 9.0, 14.0, 0.90)
PROGRAMMATIC = Overheads(0.4, 0.8, 1.0, 2.5, 1.5, 1.2, 5.0, 14.0, 0.93)  # kernels begin early


@dataclass(frozen=True, slots=True)
class StepWork:
    """A step of `rows` rows, in `runs` branches, behind `context` tokens."""

    config: ModelConfig
    quantization: Quantization = "float"
    rows: int = 1
    context: int = 2048
    runs: int = 1


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """Milliseconds: `floor` is what reading the bytes takes, `least` and `most` with overheads."""

    floor: float
    least: float
    most: float


def expected_step(
    work: StepWork, card: GraphicsCard, *, programmatic: bool = False
) -> ExpectedStep:
    """Compute how long a step takes on `card`; `programmatic` where kernels may begin early."""
    lucky = PROGRAMMATIC if programmatic else LUCKY
    return ExpectedStep(
        floor=_MS * step_bytes(work) / card.bandwidth,
        least=_step_us(work, card, lucky) / _MS,
        most=_step_us(work, card, UNLUCKY) / _MS,
    )


def step_bytes(work: StepWork) -> float:
    """What any implementation has to read: the weights, and the keys and values of the context."""
    config = work.config
    layer = sum(outputs * inputs for outputs, inputs in _layer_products(config))
    head = config.vocab_size * config.hidden_size
    return (
        config.num_layers * (layer * BYTES_OF_WEIGHT[work.quantization] + _kv_bytes(work))
        + head * BYTES_OF_WEIGHT[head_quantization(work.quantization)]
    )


def _step_us(work: StepWork, card: GraphicsCard, overheads: Overheads) -> float:
    config, head = work.config, head_quantization(work.quantization)
    layer = _attention_us(work, card, overheads) + sum(
        _product_us(shape, work.quantization, work, card, overheads)
        for shape in _layer_products(config)
    )
    last = (config.vocab_size, config.hidden_size)
    head_us = _product_us(last, head, work, card, overheads, whole=True)
    return config.num_layers * layer + head_us + overheads.choose + overheads.other


def _product_us(
    shape: tuple[int, int],
    quantization: Quantization,
    work: StepWork,
    card: GraphicsCard,
    overheads: Overheads,
    *,
    whole: bool = False,
) -> float:
    """Every program reads all rows, so the fewer outputs it has, the more the cache has to give."""
    outputs, inputs = shape
    limits = limits_for(card.architecture)
    tile = tile_for(outputs, inputs, work.rows, quantization, whole=whole, limits=limits)
    weights = outputs * inputs * BYTES_OF_WEIGHT[quantization]
    through_cache = weights + num_blocks(outputs, tile.outputs) * work.rows * inputs * 2
    if tile.splits > 1:
        through_cache += 2 * outputs * tile.splits * max(_FEW_ROWS, work.rows) * 4
    us = _slowest_us(weights / overheads.filled, through_cache, card)
    return us + overheads.gap + overheads.product + (overheads.split if tile.splits > 1 else 0)


def _attention_us(work: StepWork, card: GraphicsCard, overheads: Overheads) -> float:
    """Every block of 64 packed rows reads the context, and leaves a share for each split."""
    config = work.config
    packed = work.rows * (config.num_heads // config.num_kv_heads)
    blocks, kv = -(-packed // ROW_TILE), _kv_bytes(work)
    splits = min(num_splits(config.num_kv_heads), -(-work.context // KEY_TILE))
    shares = config.num_kv_heads * splits * packed * config.head_dim * 4
    attend = _slowest_us(kv, kv * blocks + shares, card)
    attend += overheads.gap + overheads.attend + overheads.run * (work.runs - 1)
    combine = _US * shares / card.cache_bandwidth
    return attend + combine + overheads.gap + overheads.combine


def _slowest_us(from_memory: float, through_cache: float, card: GraphicsCard) -> float:
    return _US * max(from_memory / card.bandwidth, through_cache / card.cache_bandwidth)


def _kv_bytes(work: StepWork) -> float:
    return 2 * 2 * work.config.num_kv_heads * work.config.head_dim * work.context


def _layer_products(config: ModelConfig) -> tuple[tuple[int, int], ...]:
    """Outputs and inputs of qkv, o, gate and up, down."""
    hidden, inter = config.hidden_size, config.intermediate_size
    heads, kv_heads = config.num_heads, config.num_kv_heads
    return (
        ((heads + 2 * kv_heads) * config.head_dim, hidden),
        (hidden, heads * config.head_dim),
        (2 * inter, hidden),
        (hidden, inter),
    )
