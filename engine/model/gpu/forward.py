"""A step of a Qwen2 as a list of kernels (commit, embed, layers, head, walk), and its memory."""

from dataclasses import dataclass

import torch

from engine.model.gpu.arena import KVArena
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.weights import GpuLayer, GpuWeights
from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS
from kernels.batch import BatchMetadata
from kernels.lm_head import Best
from kernels.operations import Operations
from kernels.product.tiles import num_blocks
from kernels.residual import ResidualStream
from kernels.scratch import Scratch


class Activations:
    """Tensors that kernels pass on, for R rows.

    `queries` and `attended` [R, heads, d]; `mlp_hidden` [R, I].
    """

    def __init__(
        self, config: ModelConfig, rows: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Allocate zeros, since empty rows must be finite."""

        def numbers(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
            return torch.zeros(shape, dtype=kind, device=device)

        hidden, heads = config.hidden_size, (rows, config.num_heads, config.head_dim)
        # Longer steps have no head.
        best = (num_blocks(config.vocab_size), rows if rows <= MAX_ROWS else 0)
        self.stream = ResidualStream(
            residual=numbers(rows, hidden, kind=torch.float32),
            normed=numbers(rows, hidden),
            squares=numbers(num_blocks(hidden), rows, kind=torch.float32),
            eps=config.rms_norm_eps,
        )
        self.queries, self.attended = numbers(*heads), numbers(*heads)
        self.mlp_hidden = numbers(rows, config.intermediate_size)
        self.best = Best(
            scores=numbers(*best, kind=torch.float32),
            ids=numbers(*best, kind=torch.int32),
            logits=numbers(*best, kind=torch.float32),
            maxima=numbers(*best, kind=torch.float32),
            sums=numbers(*best, kind=torch.float32),
        )

    @property
    def numbers(self) -> list[torch.Tensor]:
        """Return all tensors but the ids."""
        stream, best = self.stream, self.best
        held = [stream.residual, stream.normed, stream.squares, self.queries, self.attended]
        held += [self.mlp_hidden, best.scores, best.logits, best.maxima, best.sums]
        return held


@dataclass(frozen=True, slots=True)
class StepMemory:
    """The memory that a step of one shape reads and writes. `logits` is float32 [R, V] or None."""

    shape: StepShape
    inputs: Inputs
    activations: Activations
    outputs: Outputs
    logits: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Forward:
    """The part that steps of all shapes share. Kernels write in place, at fixed addresses."""

    config: ModelConfig
    weights: GpuWeights
    arena: KVArena
    operations: Operations
    scratch: Scratch

    def run(self, memory: StepMemory) -> None:
        """Move the rows that the last step kept, read the new ones, and run the head, if any."""
        memory.inputs.upload()
        batch, activations = memory.inputs.batch, memory.activations
        layers, next_norm_weights = self.weights.layers, self.weights.next_norm_weights
        self.operations.kv_commit(self.arena.keys, self.arena.values, batch)
        self.operations.embed_rows(
            *memory.inputs.lookup, layers[0].qkv_norm_weight, activations.stream
        )
        for index, layer in enumerate(layers):
            self._attention(index, layer, batch, activations)
            self._mlp(layer, next_norm_weights[index], activations)
        if memory.shape.has_head:
            self._lm_head(memory)

    def _attention(
        self, index: int, layer: GpuLayer, batch: BatchMetadata, activations: Activations
    ) -> None:
        stream, attended = activations.stream, activations.attended
        looked_at = (activations.queries, self.arena.keys[index], self.arena.values[index])
        self.operations.project_qkv(
            stream, layer.qkv, layer.qkv_bias, self.weights.cos_sin, batch, *looked_at, self.scratch
        )
        self.operations.batch_attention(*looked_at, batch, self.scratch, attended)
        self.operations.skinny_matmul(
            attended.flatten(1), layer.o, layer.gate_up_norm_weight, stream, self.scratch
        )

    def _mlp(
        self, layer: GpuLayer, next_norm_weight: torch.Tensor, activations: Activations
    ) -> None:
        stream, hidden = activations.stream, activations.mlp_hidden
        self.operations.gate_up(stream, layer.gate_up, hidden, self.scratch)
        self.operations.skinny_matmul(hidden, layer.down, next_norm_weight, stream, self.scratch)

    def _lm_head(self, memory: StepMemory) -> None:
        inputs, best = memory.inputs, memory.activations.best
        noise = inputs.noise if memory.shape.is_sampled else None
        self.operations.lm_head(
            memory.activations.stream, self.weights.head, noise, best, memory.logits
        )
        self.operations.acceptance_walk(best, inputs.batch, memory.outputs.acceptance)
        memory.outputs.download()
