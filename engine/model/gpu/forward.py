"""One step of a Qwen2 as a list of kernels: commit, embed, layers, head, walk."""

from dataclasses import dataclass

import torch

from engine.model.gpu.arena import KVArena
from engine.model.gpu.buffers import Flow, Inputs, Outputs, StepShape
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
    flow: Flow
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
        forest, flow = memory.inputs.forest, memory.flow
        layers = self.weights.layers
        self.operations.kv_commit(self.arena.keys, self.arena.values, forest)
        self.operations.embed_rows(
            forest,
            self.weights.embedding,
            layers[0].qkv_gain,
            flow.residual,
            flow.normed,
            flow.squares,
        )
        next_gains = [layer.qkv_gain for layer in layers[1:]] + [self.weights.head_gain]
        for index, (layer, next_gain) in enumerate(zip(layers, next_gains, strict=True)):
            self._attend(index, layer, memory.inputs, flow)
            self._think(layer, next_gain, flow)
        if memory.shape.has_head:
            self._answer(memory)

    def _attend(self, index: int, layer: GpuLayer, inputs: Inputs, flow: Flow) -> None:
        keys, values = self.arena.keys[index], self.arena.values[index]
        self.operations.project_qkv(
            flow.normed,
            flow.squares,
            layer.qkv,
            layer.qkv_bias,
            self.weights.turns,
            inputs.forest,
            flow.queries,
            keys,
            values,
            self.scratch,
            self.config.rms_norm_eps,
        )
        self.operations.forest_attention(
            flow.queries, keys, values, inputs.forest, self.scratch, flow.attended
        )
        self._add(flow.attended.flatten(1), layer.o, layer.gate_up_gain, flow)

    def _think(self, layer: GpuLayer, next_gain: torch.Tensor, flow: Flow) -> None:
        self.operations.gate_up(
            flow.normed,
            flow.squares,
            layer.gate_up,
            flow.joined,
            self.scratch,
            self.config.rms_norm_eps,
        )
        self._add(flow.joined, layer.down, next_gain, flow)

    def _add(self, inputs: torch.Tensor, weight: Weight, gain: torch.Tensor, flow: Flow) -> None:
        self.operations.skinny_matmul(
            inputs, weight, flow.residual, gain, flow.normed, flow.squares, self.scratch
        )

    def _answer(self, memory: StepMemory) -> None:
        flow, inputs = memory.flow, memory.inputs
        self.operations.lm_head(
            flow.normed,
            flow.squares,
            self.weights.head,
            inputs.draw if memory.shape.is_sampled else None,
            flow.best,
            self.config.rms_norm_eps,
            memory.logits,
        )
        self.operations.acceptance_walk(flow.best, inputs.forest, memory.outputs.answer)
        memory.outputs.download()
