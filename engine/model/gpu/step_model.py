"""How long a step should take on a card: arithmetic from shapes and data sheets, no measurement.

    kernel = max(bytes / memory, bytes through the cache / cache, instructions / issue,
                 operations / tensor cores) + gap + latency
    step = their sum

Gaps and latencies are those that others report for kernels in a CUDA graph, from the lucky to the
unlucky. Instructions were counted in the machine code. `foregram bench gpu` measures what this only
computes.
"""

from dataclasses import dataclass
from typing import NamedTuple

from engine.model.gpu.cards import Card
from engine.model.gpu.held_forms import HeldForm, PlannedProduct, products_of
from engine.model.model_config import ModelConfig
from kernels.batch import KEY_TILE, ROW_TILE
from kernels.batch_attention import TAILS, num_splits
from kernels.device_limits import limits_for
from kernels.product.tiles import ROW_TILES, num_blocks, tile_for
from kernels.weight import Quantization

_US, _MS = 1e6, 1e3
_FEW_ROWS = 16  # of a partial sum at least
_EARLY_ARCHITECTURE = 90  # from which on kernels may start before the one ahead has ended
# Instructions that warps begin for 1,024 weights in the loop of a product with tiles of 16, 32, 64
# and 128 rows: counted where compiled for sm_86, whose warps multiply by themselves, and for sm_90.
INSTRUCTIONS: dict[Quantization, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "float": ((52, 59, 90, 169), (54, 40, 58, 70)),
    "fp8": ((142, 246, 301, 599), (140, 118, 145, 155)),
    "int4": ((116, 146, 227, 711), (135, 131, 164, 217)),
    "q8_0": ((173, 244, 359, 1183), (235, 275, 350, 655)),
    "q4_k": ((398, 562, 947, 1966), (316, 377, 514, 891)),
    "q6_k": ((374, 450, 614, 1409), (362, 422, 553, 949)),
    "q6_k_min": ((486, 646, 956, 2387), (476, 606, 863, 1552)),
    "int4_zeros": ((234, 294, 404, 742), (198, 206, 231, 363)),
}


@dataclass(frozen=True, slots=True)
class Overheads:
    """Microseconds beside the bytes of a kernel.

    `filled` is the share of the bandwidth it keeps, `issued` that of the cycles in which a
    multiprocessor begins an instruction, `multiplied` that of what the tensor cores can do.
    """

    gap: float  # between two kernels
    product: float
    split: float  # for the sums of a split product to meet
    attend: float
    combine: float
    run: float  # for each further branch that a program of attention takes
    choose: float
    other: float  # commit, embedding, walk and both copies together
    filled: float
    issued: float
    multiplied: float


LUCKY = Overheads(1.0, 1.5, 1.0, 3.0, 2.0, 1.2, 5.0, 14.0, 0.93, 0.75, 0.7)
UNLUCKY = Overheads(1.3, 2.5, 2.0, 5.0, 3.5, 2.0, 9.0, 14.0, 0.90, 0.5, 0.4)
EARLY = Overheads(0.4, 0.8, 1.0, 2.5, 1.5, 1.2, 5.0, 14.0, 0.93, 0.75, 0.7)  # kernels start early


class PortableOverheads(NamedTuple):
    """Of PyTorch, operation by operation: microseconds of each, and the share of the bandwidth."""

    operation: float
    filled: float


PORTABLE_LUCKY, PORTABLE_UNLUCKY = PortableOverheads(5.0, 0.8), PortableOverheads(10.0, 0.55)
_PORTABLE_OPERATIONS_OF_LAYER, _PORTABLE_OPERATIONS = 78, 111  # counted


@dataclass(frozen=True, slots=True)
class StepWork:
    """A step of `rows` rows, in `runs` branches, behind `context` tokens."""

    config: ModelConfig
    form: HeldForm = "bfloat16"
    rows: int = 1
    context: int = 2048
    runs: int = 1


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """Milliseconds: `floor` is what reading the bytes takes, `least` and `most` with overheads."""

    floor: float
    least: float
    most: float

    @property
    def middle(self) -> float:
        """Between the least and the most."""
        return (self.least + self.most) / 2


def expected_step(work: StepWork, card: Card) -> ExpectedStep:
    """Compute how long a step takes on `card`, by our kernels or, where those do not run, PyTorch."""
    if card.has_kernels:
        lucky = EARLY if card.architecture >= _EARLY_ARCHITECTURE else LUCKY
        least, most = _step_us(work, card, lucky), _step_us(work, card, UNLUCKY)
    else:
        least = _portable_us(work, card, PORTABLE_LUCKY)
        most = _portable_us(work, card, PORTABLE_UNLUCKY)
    floor = _MS * step_bytes(work) / card.bandwidth
    return ExpectedStep(floor, least / _MS, most / _MS)


def step_bytes(work: StepWork) -> float:
    """What any implementation has to read: the weights, and the keys and values of the context."""
    weights = sum(one.count * one.num_bytes for one in products_of(work.config, work.form))
    return weights + work.config.num_layers * _kv_bytes(work)


def _step_us(work: StepWork, card: Card, overheads: Overheads) -> float:
    attention = work.config.num_layers * _attention_us(work, card, overheads)
    products = sum(
        one.count * _product_us(one, work.rows, card, overheads)
        for one in products_of(work.config, work.form)
    )
    return attention + products + overheads.choose + overheads.other


def _product_us(product: PlannedProduct, rows: int, card: Card, overheads: Overheads) -> float:
    """Every program reads all rows, so the fewer outputs it has, the more the cache has to give."""
    outputs, inputs, form = product.outputs, product.inputs, product.form
    limits = limits_for(card.architecture)
    tile = tile_for(outputs, inputs, rows, form, whole=product.is_head, limits=limits)
    weights = product.num_bytes
    through_cache = weights + num_blocks(outputs, tile.outputs) * rows * inputs * 2
    if tile.splits > 1:
        through_cache += 2 * outputs * tile.splits * max(_FEW_ROWS, rows) * 4
    counted = INSTRUCTIONS[form][limits.has_warp_groups][ROW_TILES.index(tile.rows)]
    instructions = outputs * inputs / 1024 * counted
    us = max(
        _slowest_us(weights / overheads.filled, through_cache, card),
        _US * instructions / (overheads.issued * card.issue_rate),
        _US * 2 * tile.rows * outputs * inputs / (overheads.multiplied * card.tensor_rate),
    )
    return us + overheads.gap + overheads.product + (overheads.split if tile.splits > 1 else 0)


def _attention_us(work: StepWork, card: Card, overheads: Overheads) -> float:
    """Every block of 64 packed rows reads the context, and leaves a share for each split."""
    config = work.config
    packed = work.rows * (config.num_heads // config.num_kv_heads)
    blocks, kv = -(-packed // ROW_TILE), _kv_bytes(work)
    splits = min(num_splits(config.num_kv_heads), -(-work.context // KEY_TILE)) + 1
    shares = config.num_kv_heads * splits * packed * config.head_dim * 4
    attend = _slowest_us(kv, kv * blocks + shares, card)
    runs_behind = -(-work.runs // TAILS) - 1  # of a program
    attend += overheads.gap + overheads.attend + overheads.run * runs_behind
    combine = _US * shares / card.cache_bandwidth
    return attend + combine + overheads.gap + overheads.combine


def _portable_us(work: StepWork, card: Card, overheads: PortableOverheads) -> float:
    operations = work.config.num_layers * _PORTABLE_OPERATIONS_OF_LAYER + _PORTABLE_OPERATIONS
    read = _US * step_bytes(work) / (overheads.filled * card.bandwidth)
    return read + operations * overheads.operation


def _slowest_us(from_memory: float, through_cache: float, card: Card) -> float:
    return _US * max(from_memory / card.bandwidth, through_cache / card.cache_bandwidth)


def _kv_bytes(work: StepWork) -> float:
    return 2 * 2 * work.config.num_kv_heads * work.config.head_dim * work.context
