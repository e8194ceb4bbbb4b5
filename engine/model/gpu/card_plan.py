"""Which models fit a GPU's memory, how they are held, and what a step of each takes.

Step times are computed, not measured: the bytes that a step reads at the share of the bandwidth
that products of that kind reach, and a fixed time for each launch. `foregram bench gpu` measures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from engine.errors import NoSpaceError
from engine.model.device import DeviceChoice, free_bytes, memory_bandwidth
from engine.model.gpu.memory_plan import MemoryPlan, weight_bytes
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.model_config import ModelConfig
from engine.model_names import DEFAULT_MODEL
from kernels.weight import Quantization

_GIBIBYTE = 1 << 30
_TAKEN_BYTES = 700_000_000  # of a card by its driver and a desktop
_CONTEXT = 2048  # tokens whose keys and values a step reads
_DTYPES: dict[Quantization, str] = {"float": "bfloat16", "fp8": "fp8", "int4": "int4"}
_BANDWIDTH_SHARE: dict[Quantization, float] = {"float": 0.92, "fp8": 0.8, "int4": 0.5}
_LAUNCH_S, _LAUNCHES_OF_LAYER, _LAUNCHES = 3.8e-6, 6, 7
# In PyTorch, operation by operation; so many were counted.
_PORTABLE_SHARE, _PORTABLE_LAUNCH_S = 0.6, 8e-6
_PORTABLE_LAUNCHES_OF_LAYER, _PORTABLE_LAUNCHES = 78, 111

# What `auto` takes: with 2 to 3 tokens a step, a line is there in a quarter of a second.
_GOOD_STEP_S = 0.025
_GOOD_POSITIONS = 16_384  # the prompts of a few files
_LEFT_OUT = {"3b"}  # its licence forbids commercial use
_PICKED: tuple[Quantization, ...] = ("float", "fp8")  # int4 costs quality


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU: bytes of memory that are free, and bytes a second."""

    name: str
    free: int
    bandwidth: float
    has_kernels: bool = True

    @classmethod
    def of(cls, choice: DeviceChoice) -> Self:
        """The GPU that was chosen, as it is now."""
        free, known = free_bytes(choice.device), memory_bandwidth(choice.device)
        return cls(choice.name, free, known or _like(free).bandwidth, choice.has_kernels)

    @classmethod
    def sold(cls, name: str, gigabytes: int, gigabytes_a_second: int) -> Self:
        """A card as its maker describes it."""
        return cls(name, gigabytes * _GIBIBYTE - _TAKEN_BYTES, gigabytes_a_second * 1e9)


CARDS = {
    8: Card.sold("RTX 4060", 8, 272),
    12: Card.sold("RTX 4070", 12, 504),
    16: Card.sold("RTX 4060 Ti", 16, 288),
    24: Card.sold("RTX 4090", 24, 1008),
    48: Card.sold("RTX A6000", 48, 768),
    80: Card.sold("A100", 80, 2039),
}


@dataclass(frozen=True, slots=True)
class Fit:
    """A model that fits: its alias, the setting `dtype`, tokens of cache, and a step's duration."""

    model: str
    dtype: str
    positions: int
    step_s: float

    def __str__(self) -> str:
        return (
            f"{self.model} in {self.dtype}, {self.positions:,} tokens of context, "
            f"{1000 * self.step_s:.0f} ms a step"
        )


def fits(card: Card) -> list[Fit]:
    """What fits a card: the largest model first, of each the most bits first."""
    return list(_fits(card))


def pick(card: Card, dtype: str | None = None) -> Fit | None:
    """What `model = "auto"` takes: of what is good to type with the largest model, in most bits.

    `dtype` leaves no other way to hold it. None where nothing fits.
    """
    found = [one for one in fits(card) if one.model not in _LEFT_OUT]
    allowed = {dtype} if dtype else {_DTYPES[one] for one in _PICKED}
    found = [one for one in found if one.dtype in allowed]
    good = (one for one in found if one.step_s <= _GOOD_STEP_S and _is_roomy(one))
    return next(good, found[-1] if found else None)


def picked(choice: DeviceChoice, dtype: str | None) -> tuple[str, str | None]:
    """The model's name and dtype for the device that was chosen."""
    if choice.is_cpu:
        return DEFAULT_MODEL, dtype
    fit = pick(Card.of(choice), dtype)
    return (fit.model, fit.dtype) if fit else (DEFAULT_MODEL, dtype)


def _is_roomy(fit: Fit) -> bool:
    return fit.positions >= _GOOD_POSITIONS


def _fits(card: Card) -> Iterator[Fit]:
    quantizations: Sequence[Quantization] = tuple(_DTYPES) if card.has_kernels else ("float",)
    for name, config in reversed(QWEN_SHAPES.items()):
        for quantization in quantizations:
            try:
                plan = MemoryPlan.make(config, quantization, card.free, None)
            except NoSpaceError:
                continue
            step_s = _step_s(config, quantization, card)
            yield Fit(name, _DTYPES[quantization], plan.positions, step_s)


def _step_s(config: ModelConfig, quantization: Quantization, card: Card) -> float:
    """A step of one row: all weights but an embedding of its own, keys and values, launches."""
    embedding = 2 * config.vocab_size * config.hidden_size
    is_shared = config.tie_word_embeddings and quantization == "float"
    weights = weight_bytes(config, quantization) - (0 if is_shared else embedding)
    cache = 4 * config.num_layers * config.num_kv_heads * config.head_dim * _CONTEXT
    if card.has_kernels:
        share, launch_s = _BANDWIDTH_SHARE[quantization], _LAUNCH_S
        launches = config.num_layers * _LAUNCHES_OF_LAYER + _LAUNCHES
    else:
        share, launch_s = _PORTABLE_SHARE, _PORTABLE_LAUNCH_S
        launches = config.num_layers * _PORTABLE_LAUNCHES_OF_LAYER + _PORTABLE_LAUNCHES
    return (weights + cache) / (share * card.bandwidth) + launches * launch_s


def _like(free: int) -> Card:
    """The card of the list that is nearest in memory."""
    return min(CARDS.values(), key=lambda card: abs(card.free - free))
