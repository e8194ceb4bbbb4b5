"""The matrices of a model that a step multiplies by, and how each is held: in one form of ours, or in those of a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.model.gpu.weights import head_quantization
from engine.model.model_config import ModelConfig
from kernels.weight import BYTES_OF_WEIGHT, Quantization

HeldForm = Literal["bfloat16", "fp8", "int4", "Q8_0", "Q4_K_M"]
HELD_FORMS: tuple[HeldForm, ...] = ("bfloat16", "Q8_0", "fp8", "Q4_K_M", "int4")  # by bits
FORMS_OF_FILES: frozenset[HeldForm] = frozenset(("Q8_0", "Q4_K_M"))
_OURS: dict[HeldForm, Quantization] = {"bfloat16": "float", "fp8": "fp8", "int4": "int4"}
_K_BLOCK = 256  # inputs of a block: a file holds other matrices in eight bits
# Of a Q4_K_M, half of whose layers have values and `down` in six bits: qkv is one matrix here.
_Q4_K_M: dict[str, tuple[Quantization, Quantization]] = {
    "qkv": ("q4_k", "q6_k_min"),
    "o": ("q4_k", "q4_k"),
    "gate_up": ("q4_k", "q4_k"),
    "down": ("q4_k", "q6_k"),
    "head": ("q6_k", "q6_k"),
}


@dataclass(frozen=True, slots=True)
class PlannedProduct:
    """So many products of `outputs` by `inputs` in a step; half a one where forms differ by layer."""

    name: str
    outputs: int
    inputs: int
    form: Quantization
    count: float

    @property
    def is_head(self) -> bool:
        """Whether it ranks its outputs, and so is not split."""
        return self.name == "head"

    @property
    def num_bytes(self) -> float:
        """Of one of them."""
        return self.outputs * self.inputs * BYTES_OF_WEIGHT[self.form]


def products_of(config: ModelConfig, form: HeldForm) -> Iterator[PlannedProduct]:
    """The products of a step: those of all layers, and the head's."""
    hidden, inter, layers = config.hidden_size, config.intermediate_size, config.num_layers
    heads = config.num_heads * config.head_dim
    qkv = heads + 2 * config.num_kv_heads * config.head_dim
    yield from _held("qkv", qkv, hidden, layers, form)
    yield from _held("o", hidden, heads, layers, form)
    yield from _held("gate_up", 2 * inter, hidden, layers, form)
    yield from _held("down", hidden, inter, layers, form)
    yield from _held("head", config.vocab_size, hidden, 1, form)


def file_bytes(config: ModelConfig, form: HeldForm) -> int:
    """What the weights of a file take on a GPU: an embedding beside the head stays on the host."""
    return int(sum(one.count * one.num_bytes for one in products_of(config, form)))


def _held(
    name: str, outputs: int, inputs: int, count: int, form: HeldForm
) -> Iterator[PlannedProduct]:
    """One entry, or two where half of the layers have another form than the rest."""
    one, other = _forms(name, inputs, form)
    if one == other:
        yield PlannedProduct(name, outputs, inputs, one, count)
    else:
        yield PlannedProduct(name, outputs, inputs, one, count / 2)
        yield PlannedProduct(name, outputs, inputs, other, count / 2)


def _forms(name: str, inputs: int, form: HeldForm) -> tuple[Quantization, Quantization]:
    if form in FORMS_OF_FILES:
        has_blocks = form == "Q4_K_M" and inputs % _K_BLOCK == 0
        return _Q4_K_M[name] if has_blocks else ("q8_0", "q8_0")
    ours = _OURS[form]
    held = head_quantization(ours) if name == "head" else ours
    return held, held
