"""One step of a Qwen2 as a list of kernels: commit, embed, layers, head, walk."""

from dataclasses import dataclass

import torch

from engine.model.gpu.activations import Activations
from engine.model.gpu.arena import KVArena
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.weights import GpuLayer, GpuWeights
from engine.model.model_config import ModelConfig
from kernels.operations import Operations
from kernels.scratch import Scratch
from kernels.weight import Weight


@dataclass(frozen=True, slots=True)
class StepMemory:
    """All that a step of one shape reads and writes. `logits` float32 [R, V] where it has them."""

    shape: StepShape
    inputs: Inputs
    activations: Activations
    outputs: Outputs
    logits: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Forward:
    """What steps of all shapes share. Everything is written in place, at fixed addresses."""

    config: ModelConfig
    weights: GpuWeights
    arena: KVArena
    operations: Operations
    scratch: Scratch

    def run(self, memory: StepMemory) -> None:
        """Keep what the step before accepted, read the rows, and answer where there is a head."""
        memory.inputs.upload()
        batch, activations = memory.inputs.batch, memory.activations
        layers = self.weights.layers
        self.operations.kv_commit(self.arena.keys, self.arena.values, batch)
        self.operations.embed_rows(
            batch,
            self.weights.embedding,
            layers[0].qkv_norm_weight,
            activations.residual,
            activations.normed,
            activations.squares,
        )
        next_norm_weights = [layer.qkv_norm_weight for layer in layers[1:]] + [
            self.weights.head_norm_weight
        ]
        for index, (layer, next_norm_weight) in enumerate(
            zip(layers, next_norm_weights, strict=True)
        ):
            self._attention(index, layer, memory.inputs, activations)
            self._mlp(layer, next_norm_weight, activations)
        if memory.shape.has_head:
            self._lm_head(memory)

    def _attention(
        self, index: int, layer: GpuLayer, inputs: Inputs, activations: Activations
    ) -> None:
        keys, values = self.arena.keys[index], self.arena.values[index]
        self.operations.project_qkv(
            activations.normed,
            activations.squares,
            layer.qkv,
            layer.qkv_bias,
            self.weights.cos_sin,
            inputs.batch,
            activations.queries,
            keys,
            values,
            self.scratch,
            self.config.rms_norm_eps,
        )
        self.operations.batch_attention(
            activations.queries, keys, values, inputs.batch, self.scratch, activations.attended
        )
        self._add(activations.attended.flatten(1), layer.o, layer.gate_up_norm_weight, activations)

    def _mlp(
        self, layer: GpuLayer, next_norm_weight: torch.Tensor, activations: Activations
    ) -> None:
        self.operations.gate_up(
            activations.normed,
            activations.squares,
            layer.gate_up,
            activations.mlp_hidden,
            self.scratch,
            self.config.rms_norm_eps,
        )
        self._add(activations.mlp_hidden, layer.down, next_norm_weight, activations)

    def _add(
        self,
        inputs: torch.Tensor,
        weight: Weight,
        norm_weight: torch.Tensor,
        activations: Activations,
    ) -> None:
        self.operations.skinny_matmul(
            inputs,
            weight,
            activations.residual,
            norm_weight,
            activations.normed,
            activations.squares,
            self.scratch,
        )

    def _lm_head(self, memory: StepMemory) -> None:
        activations, inputs = memory.activations, memory.inputs
        self.operations.lm_head(
            activations.normed,
            activations.squares,
            self.weights.head,
            inputs.noise if memory.shape.is_sampled else None,
            activations.best,
            self.config.rms_norm_eps,
            memory.logits,
        )
        self.operations.acceptance_walk(activations.best, inputs.batch, memory.outputs.acceptance)
        memory.outputs.download()
