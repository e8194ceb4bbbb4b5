"""Plan a model's memory on a GPU before loading anything."""

from dataclasses import dataclass
from typing import Self

from engine.errors import NoSpaceError
from engine.model.gpu.step_graphs import READ_BUCKETS, ROW_BUCKETS, SEQUENCE_BUCKETS
from engine.model.gpu.weights import head_quantization
from engine.model.model_config import ModelConfig
from kernels.batch import max_blocks
from kernels.batch_attention import scratch_size as attention_scratch
from kernels.weight import BYTES_OF_WEIGHT, Quantization

_CONTEXT_BYTES = 1_500_000_000  # CUDA itself, the captured graphs and buffers for packing weights
_LEAST_POSITIONS = 8192  # tokens of two prompts with their completions
_CACHE_SHARE, _MOST_CACHE_BYTES = 0.4, 16 << 30  # of the memory that the weights leave
_ADVICE = "take a smaller model, a smaller kv_budget_mb, dtype fp8 or int4, or a file of fewer bits"


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of each part, and of free memory. `positions` is the cache's capacity in tokens."""

    weights: int
    working: int
    positions: int
    position_bytes: int
    free: int

    @classmethod
    def make(cls, config: ModelConfig, weights: int, free: int, kv_bytes: int | None) -> Self:
        """Plan for `free` bytes; `kv_bytes` None takes a share of what the `weights` leave.

        Raises NoSpaceError, with the plan, if it does not fit.
        """
        working = working_bytes(config)
        position_bytes = 4 * config.num_layers * config.num_kv_heads * config.head_dim
        left = free - weights - working
        cache = min(int(left * _CACHE_SHARE), _MOST_CACHE_BYTES) if kv_bytes is None else kv_bytes
        positions = max(cache // position_bytes, _LEAST_POSITIONS)
        plan = cls(weights, working, positions, position_bytes, free)
        if plan.total > free:
            raise NoSpaceError(f"the model does not fit the GPU: {plan}; {_ADVICE}")
        return plan

    @property
    def cache(self) -> int:
        """Return the bytes of keys and values."""
        return self.positions * self.position_bytes

    @property
    def total(self) -> int:
        """Return the bytes of all parts."""
        return self.weights + self.working + self.cache

    def __str__(self) -> str:
        parts = (self.weights, self.working, self.cache, self.total, self.free)
        weights, working, cache, total, free = (f"{size / 1e9:.1f} GB" for size in parts)
        return (
            f"weights {weights}, working memory {working}, keys and values of {self.positions:,} "
            f"tokens {cache} = {total} of {free} free"
        )


def weight_bytes(config: ModelConfig, quantization: Quantization) -> int:
    """Return the bytes of weights on a GPU; an untied embedding stays on the host."""
    head = config.vocab_size * config.hidden_size
    matrices = config.num_parameters - head * (1 if config.tie_word_embeddings else 2)
    of_head = BYTES_OF_WEIGHT[head_quantization(quantization)]
    return int(matrices * BYTES_OF_WEIGHT[quantization] + head * of_head)


def working_bytes(config: ModelConfig) -> int:
    """Return the bytes of activations and logits of all shapes, scratch memory and CUDA itself."""
    width = 11 * config.hidden_size + 2 * config.intermediate_size
    flowing = sum(READ_BUCKETS) * width
    best = sum(ROW_BUCKETS) * (config.vocab_size // 3)
    logits = 4 * ROW_BUCKETS[-1] * config.vocab_size
    cos_sin = 4 * config.max_position * config.head_dim
    shares = attention_scratch(most_blocks(config), config.num_kv_heads, config.head_dim)
    return flowing + best + logits + cos_sin + 4 * shares.num_partials + _CONTEXT_BYTES


def most_blocks(config: ModelConfig) -> int:
    """Return the most row blocks of attention: for a long piece of a prompt or many sequences."""
    group = config.num_heads // config.num_kv_heads
    largest = ((READ_BUCKETS[-1], 1), (ROW_BUCKETS[-1], SEQUENCE_BUCKETS[-1]))
    return max(max_blocks(rows, sequences, group) for rows, sequences in largest)
