"""Find the models that fit a GPU's memory, their form, and the least time of a step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import torch

from engine.errors import NoSpaceError
from engine.model.accelerators import free_bytes, memory_bandwidth, total_bytes
from engine.model.device import DeviceChoice
from engine.model.gpu.memory_plan import MemoryPlan, weight_bytes
from engine.model.gpu.quantization import GPU_QUANTIZATIONS
from engine.model.model_config import QWEN_SHAPES, ModelConfig
from engine.model_names import SMALLEST_MODEL
from kernels.weight import BYTES_OF_WEIGHT

_GIGA, _GIBIBYTE = 1e9, 1 << 30
_TAKEN_BYTES = 700_000_000  # memory that the driver and a desktop take
HeldForm = Literal["bfloat16", "fp8", "int4", "Q8_0", "Q4_K_M"]
_HELD_FORMS: tuple[HeldForm, ...] = ("bfloat16", "Q8_0", "fp8", "Q4_K_M", "int4")  # by bits
_BYTES_OF_Q4_K_M = 0.62  # bytes per weight of a Qwen2.5-Coder file, where some have six bits
_K_BLOCK = 256  # inputs per block; files store matrices of other widths in eight bits
# Limits for `auto`: near this floor, at 2 to 3 tokens a step, a line takes a quarter of a second.
# PyTorch exceeds its floor by more, since it reads and writes between products.
_MOST_FLOOR_MS, _MOST_FLOOR_MS_OF_PYTORCH = 20, 10
_CONTEXT = 2048  # tokens whose keys and values a step reads
_GOOD_POSITIONS = 16_384  # tokens, enough for the prompts of a few files
_LEFT_OUT = {"3b"}  # its licence forbids commercial use
_PICKED: frozenset[HeldForm] = frozenset(("bfloat16", "fp8"))  # int4 costs quality


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU: its memory in GiB, and its memory bandwidth in GB/s.

    `free` is the memory for a model in bytes; `has_kernels` says whether our kernels run there.
    """

    name: str
    memory_gib: float
    memory_gb_s: float
    free: int = 0
    has_kernels: bool = True

    @classmethod
    def of(cls, choice: DeviceChoice) -> Self:
        """Describe the chosen GPU. If torch reports no bandwidth, assume that of a similar card."""
        device = torch.device(choice.device)
        memory = total_bytes(device) / _GIBIBYTE
        like = min(PLANNED_CARDS, key=lambda card: abs(card.memory_gib - memory))
        bandwidth = memory_bandwidth(device) / _GIGA or like.memory_gb_s
        return cls(choice.name, memory, bandwidth, free_bytes(device), choice.has_kernels)


# From the makers' data sheets, with no other program running.
PLANNED_CARDS = tuple(
    Card(name, memory_gib, memory_gb_s, memory_gib * _GIBIBYTE - _TAKEN_BYTES)
    for name, memory_gib, memory_gb_s in (
        ("RTX 4060", 8, 272),
        ("RTX 4070", 12, 504),
        ("RTX 4060 Ti", 16, 288),
        ("RTX 4090", 24, 1008),
        ("RTX A6000", 48, 768),
        ("A100", 80, 2039),
        ("H200", 140, 4800),
    )
)


@dataclass(frozen=True, slots=True)
class Fit:
    """A model that fits: its alias, the form of its weights, and its memory.

    `form` is a value of the setting `dtype` or a form of files. `floor_ms` is the time to read the
    weights and the keys and values of 2,048 tokens: no step is faster.
    """

    model: str
    form: HeldForm
    plan: MemoryPlan
    floor_ms: float

    def __str__(self) -> str:
        return (
            f"{self.model} in {self.form}, {self.plan.positions:,} tokens of context, "
            f"{self.floor_ms:.0f} ms a step at the least"
        )


def fits(card: Card) -> Iterator[Fit]:
    """Yield what fits a card: largest model first, and for each model most bits first."""
    forms = _HELD_FORMS if card.has_kernels else _HELD_FORMS[:1]
    for name, config in reversed(QWEN_SHAPES.items()):
        for form in forms:
            try:
                plan = MemoryPlan.make(config, _weight_bytes(config, form), card.free, None)
            except NoSpaceError:
                continue
            read = plan.weights + _CONTEXT * plan.position_bytes
            yield Fit(name, form, plan, 1000 * read / (card.memory_gb_s * _GIGA))


def pick(card: Card, dtype: str | None = None) -> Fit | None:
    """Return the choice of `model = "auto"`: the largest model that is fast enough to type with.

    It has the most bits that fit, or is in `dtype` if given. None if nothing fits.
    """
    allowed = {dtype} if dtype else _PICKED
    found = [one for one in fits(card) if one.model not in _LEFT_OUT and one.form in allowed]
    most = _MOST_FLOOR_MS if card.has_kernels else _MOST_FLOOR_MS_OF_PYTORCH
    good = (one for one in found if one.floor_ms <= most and one.plan.positions >= _GOOD_POSITIONS)
    return next(good, found[-1] if found else None)


def picked(choice: DeviceChoice, dtype: str | None) -> tuple[str, str | None]:
    """Return the model's name and dtype for a GPU; the smallest one if nothing fits."""
    fit = pick(Card.of(choice), dtype)
    return (fit.model, fit.form) if fit else (SMALLEST_MODEL, dtype)


def _weight_bytes(config: ModelConfig, form: HeldForm) -> int:
    """Return the bytes of weights on a GPU, without those on the host; estimated for files."""
    if form in GPU_QUANTIZATIONS:
        return weight_bytes(config, GPU_QUANTIZATIONS[form])
    has_blocks = form == "Q4_K_M" and config.hidden_size % _K_BLOCK == 0
    beside = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    of_weight = _BYTES_OF_Q4_K_M if has_blocks else BYTES_OF_WEIGHT["q8_0"]
    return int((config.num_parameters - beside) * of_weight)
