"""Which models fit a GPU's memory, how they are held, and what a step of each takes at the least."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.errors import NoSpaceError
from engine.model.device import GPU_QUANTIZATIONS, DeviceChoice
from engine.model.gpu.cards import Card
from engine.model.gpu.memory_plan import MemoryPlan
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.model_config import ModelConfig
from engine.model_names import DEFAULT_MODEL
from kernels.weight import BYTES_OF_WEIGHT, Quantization

HeldForm = Literal["bfloat16", "fp8", "int4", "Q8_0", "Q4_K_M"]
_HELD_FORMS: tuple[HeldForm, ...] = ("bfloat16", "Q8_0", "fp8", "Q4_K_M", "int4")  # by bits
_FORMS_OF_FILES: frozenset[HeldForm] = frozenset(("Q8_0", "Q4_K_M"))
_K_BLOCK = 256  # inputs of a block: a file holds other matrices in eight bits
# Of a Q4_K_M, half of whose layers have values and `down` in six bits: qkv is one matrix here.
_Q4_K_M: dict[str, tuple[Quantization, Quantization]] = {
    "qkv": ("q4_k", "q6_k_min"),
    "o": ("q4_k", "q4_k"),
    "gate_up": ("q4_k", "q4_k"),
    "down": ("q4_k", "q6_k"),
    "head": ("q6_k", "q6_k"),
}
# What `auto` takes: with 2 to 3 tokens a step, a line is there in a quarter of a second, if a step
# takes not much longer than its floor. PyTorch takes longer, as it reads and writes between products.
_MOST_FLOOR_MS, _MOST_FLOOR_MS_OF_PYTORCH = 20, 10
_CONTEXT = 2048  # tokens whose keys and values a step reads
_GOOD_POSITIONS = 16_384  # the prompts of a few files
_LEFT_OUT = {"3b"}  # its licence forbids commercial use
_PICKED: frozenset[HeldForm] = frozenset(("bfloat16", "fp8"))  # int4 costs quality


@dataclass(frozen=True, slots=True)
class Fit:
    """A model that fits: its alias, how it is held, and what that takes of the memory.

    `form` is a value of the setting `dtype`, or what a model's file holds. `floor_ms` is how long
    reading the weights takes, and the keys and values of 2,048 tokens: no step takes less.
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


def fits(card: Card) -> list[Fit]:
    """What fits a card: the largest model first, of each the most bits first."""
    return list(_fits(card))


def pick(card: Card, dtype: str | None = None) -> Fit | None:
    """What `model = "auto"` takes: of what is good to type with the largest model, in most bits.

    `dtype` leaves no other way to hold it. None where nothing fits.
    """
    found = [one for one in fits(card) if one.model not in _LEFT_OUT]
    allowed = {dtype} if dtype else _PICKED
    found = [one for one in found if one.form in allowed]
    most = _MOST_FLOOR_MS if card.has_kernels else _MOST_FLOOR_MS_OF_PYTORCH
    good = (one for one in found if one.floor_ms <= most and _is_roomy(one))
    return next(good, found[-1] if found else None)


def picked(choice: DeviceChoice, dtype: str | None) -> tuple[str, str | None]:
    """The model's name and dtype for the device that was chosen."""
    if choice.is_cpu:
        return DEFAULT_MODEL, dtype
    fit = pick(Card.of(choice), dtype)
    return (fit.model, fit.form) if fit else (DEFAULT_MODEL, dtype)


def _is_roomy(fit: Fit) -> bool:
    return fit.plan.positions >= _GOOD_POSITIONS


def _fits(card: Card) -> Iterator[Fit]:
    forms = _HELD_FORMS if card.has_kernels else ("bfloat16",)
    for name, config in reversed(QWEN_SHAPES.items()):
        for form in forms:
            try:
                plan = _memory_plan(config, form, card.free)
            except NoSpaceError:
                continue
            read = plan.weights + _CONTEXT * plan.position_bytes
            yield Fit(name, form, plan, card.reading_ms(read))


def _memory_plan(config: ModelConfig, form: HeldForm, free: int) -> MemoryPlan:
    if form in _FORMS_OF_FILES:
        return MemoryPlan.make(config, "float", free, None, file_bytes(config, form))
    return MemoryPlan.make(config, GPU_QUANTIZATIONS[form], free, None)


def file_bytes(config: ModelConfig, form: HeldForm) -> int:
    """What the weights of a file take on a GPU: an embedding beside the head stays on the host."""
    return int(sum(_bytes_of(*matrix, form) for matrix in _matrices(config)))


def _matrices(config: ModelConfig) -> Iterator[tuple[str, int, int, int]]:
    """Names, outputs and inputs of the matrices that a step multiplies by, and how many there are."""
    hidden, inter, layers = config.hidden_size, config.intermediate_size, config.num_layers
    heads = config.num_heads * config.head_dim
    yield "qkv", heads + 2 * config.num_kv_heads * config.head_dim, hidden, layers
    yield "o", hidden, heads, layers
    yield "gate_up", 2 * inter, hidden, layers
    yield "down", hidden, inter, layers
    yield "head", config.vocab_size, hidden, 1


def _bytes_of(name: str, outputs: int, inputs: int, count: int, form: HeldForm) -> float:
    """Of all matrices of a name, half of which may have another form than the rest."""
    has_blocks = form == "Q4_K_M" and inputs % _K_BLOCK == 0
    forms: tuple[Quantization, ...] = _Q4_K_M[name] if has_blocks else ("q8_0",)
    of_weight = sum(BYTES_OF_WEIGHT[one] for one in forms) / len(forms)
    return count * outputs * inputs * of_weight
