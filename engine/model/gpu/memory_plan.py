"""What a model takes of a GPU's memory, said and judged before anything is loaded."""

from dataclasses import dataclass
from typing import Self

from engine.errors import NoSpaceError
from engine.model.gpu.step_graphs import ROW_BUCKETS
from engine.model.gpu.weights import head_quantization
from engine.model.model_config import ModelConfig
from kernels.weight import BYTES_OF_WEIGHT, Quantization

_GIGABYTE = 1e9
_CONTEXT_BYTES = 1_500_000_000  # CUDA itself, the captured graphs, what packing needs at a time
_LEAST_POSITIONS = 8192  # a prompt, its completion, and a second one
_CACHE_SHARE, _MOST_CACHE_BYTES = 0.4, 16 << 30  # of what the weights leave, unless told


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of each part, and what is free. `positions` are the tokens that the cache holds."""

    weights: int
    working: int
    positions: int
    position_bytes: int
    free: int

    @classmethod
    def make(
        cls,
        config: ModelConfig,
        quantization: Quantization,
        free: int,
        kv_bytes: int | None,
        file_bytes: int | None = None,
    ) -> Self:
        """Plan for `free` bytes; `kv_bytes` None takes a share of what the weights leave.

        `file_bytes` are the weights where they stay in the form of the model's file.
        Raises NoSpaceError, with the plan, where it does not fit.
        """
        weights = weight_bytes(config, quantization) if file_bytes is None else file_bytes
        working = working_bytes(config)
        position_bytes = 4 * config.num_layers * config.num_kv_heads * config.head_dim
        left = free - weights - working
        cache = min(int(left * _CACHE_SHARE), _MOST_CACHE_BYTES) if kv_bytes is None else kv_bytes
        positions = max(cache // position_bytes, _LEAST_POSITIONS)
        plan = cls(weights, working, positions, position_bytes, free)
        if plan.total > free:
            advice = _advice(quantization, is_file=file_bytes is not None)
            raise NoSpaceError(f"the model does not fit the GPU: {plan}; {advice}")
        return plan

    @property
    def cache(self) -> int:
        """Bytes of keys and values."""
        return self.positions * self.position_bytes

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return self.weights + self.working + self.cache

    def __str__(self) -> str:
        parts = {"weights": self.weights, "working memory": self.working}
        told = ", ".join(f"{name} {size / _GIGABYTE:.1f} GB" for name, size in parts.items())
        return (
            f"{told}, keys and values of {self.positions:,} tokens {self.cache / _GIGABYTE:.1f} GB"
            f" = {self.total / _GIGABYTE:.1f} GB of {self.free / _GIGABYTE:.1f} GB free"
        )


def weight_bytes(config: ModelConfig, quantization: Quantization) -> int:
    """Weights in `quantization`; the embedding stays in 16 bits, beside a head of its own."""
    embedding = config.vocab_size * config.hidden_size
    matrices = config.num_parameters - embedding * (1 if config.tie_word_embeddings else 2)
    head = 0 if quantization == "float" and config.tie_word_embeddings else embedding
    return int(
        2 * embedding
        + matrices * BYTES_OF_WEIGHT[quantization]
        + head * BYTES_OF_WEIGHT[head_quantization(quantization)]
    )


def working_bytes(config: ModelConfig) -> int:
    """What flows through steps of all shapes, their logits, and what CUDA takes."""
    widest = 8 * config.hidden_size + 4 * config.intermediate_size + config.vocab_size // 4
    logits = 4 * ROW_BUCKETS[-1] * config.vocab_size
    cos_sin = 4 * config.max_position * config.head_dim
    return 2 * sum(ROW_BUCKETS) * widest + logits + cos_sin + _CONTEXT_BYTES


def _advice(quantization: Quantization, *, is_file: bool) -> str:
    smaller = {"float": "dtype fp8 or int4", "fp8": "dtype int4"}.get(quantization, "")
    if is_file or not smaller:
        smaller = "a file of fewer bits"
    return f"take a smaller model, a smaller kv_budget_mb, or {smaller}"
