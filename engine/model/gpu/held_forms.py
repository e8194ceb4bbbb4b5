"""How a model's weights can be held: in one form of ours, or in those of a file."""

from collections.abc import Iterator
from typing import Literal

from engine.model.model_config import ModelConfig
from kernels.weight import BYTES_OF_WEIGHT, Quantization

HeldForm = Literal["bfloat16", "fp8", "int4", "Q8_0", "Q4_K_M"]
HELD_FORMS: tuple[HeldForm, ...] = ("bfloat16", "Q8_0", "fp8", "Q4_K_M", "int4")  # by bits
FORMS_OF_FILES: frozenset[HeldForm] = frozenset(("Q8_0", "Q4_K_M"))
_K_BLOCK = 256  # inputs of a block: a file holds other matrices in eight bits
# Of a Q4_K_M, half of whose layers have values and `down` in six bits: qkv is one matrix here.
_Q4_K_M: dict[str, tuple[Quantization, Quantization]] = {
    "qkv": ("q4_k", "q6_k_min"),
    "o": ("q4_k", "q4_k"),
    "gate_up": ("q4_k", "q4_k"),
    "down": ("q4_k", "q6_k"),
    "head": ("q6_k", "q6_k"),
}


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
