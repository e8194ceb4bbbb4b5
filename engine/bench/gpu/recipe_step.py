"""A step of any number of rows as an ordinary engine runs it: cuBLAS, torch's attention, one graph.

Its text is of no use, but it is the work of such a step: our weights in our order of rows.
"""

import torch
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

from engine.bench.gpu.attention import branch_mask
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import BRANCH
from engine.model.gpu.weights import GpuLayer, GpuWeights
from engine.model.model_config import ModelConfig


class RecipeStep:
    """The step. The cache holds each head `repeats` times: a group's size spares torch sharing."""

    def __init__(
        self,
        machine: Machine,
        config: ModelConfig,
        weights: GpuWeights,
        rows: int,
        context: int,
        repeats: int,
    ) -> None:
        self._mask = branch_mask(rows, context).to(machine.device)
        self._config, self._weights = config, weights
        self._rows, self._place = rows, slice(context, context + rows)
        self._ids = torch.arange(rows, device=machine.device) % config.vocab_size
        cos, sin = (
            weights.cos_sin[context + torch.arange(rows) % BRANCH]
            .to(machine.dtype)
            .chunk(2, dim=-1)
        )
        self._cos = torch.cat([cos, cos], -1)[:, None]
        self._sin = torch.cat([-sin, sin], -1)[:, None]
        heads = (config.num_kv_heads, repeats)
        self._cache = machine.random(
            config.num_layers, 2, *heads, self._mask.shape[-1], config.head_dim
        )
        self._is_shared = repeats * config.num_kv_heads != config.num_heads
        self._table = weights.embedding.table.values.to(machine.device)
        self._norm_weights = [
            (layer.qkv_norm_weight.to(machine.dtype), layer.gate_up_norm_weight.to(machine.dtype))
            for layer in weights.layers
        ]
        self._biases = [layer.qkv_bias.to(machine.dtype) for layer in weights.layers]
        self._head_norm_weight = weights.head_norm_weight.to(machine.dtype)

    def chosen(self) -> torch.Tensor:
        """Ids that the rows choose."""
        return self.logits().argmax(-1)

    def logits(self) -> torch.Tensor:
        """Run all layers and the head. [rows, vocab]."""
        residual = embedding(self._ids, self._table)
        for index, layer in enumerate(self._weights.layers):
            attention_norm_weight, gate_norm_weight = self._norm_weights[index]
            attended = self._attend(index, layer, self._normed(residual, attention_norm_weight))
            residual.addmm_(attended, layer.o.values.T)
            hidden = linear(self._normed(residual, gate_norm_weight), layer.gate_up.values)
            gate, up = hidden.chunk(2, dim=-1)
            residual.addmm_(silu(gate).mul_(up), layer.down.values.T)
        return linear(self._normed(residual, self._head_norm_weight), self._weights.head.values)

    def _attend(self, index: int, layer: GpuLayer, normed: torch.Tensor) -> torch.Tensor:
        heads, kv_heads = self._config.num_heads, self._config.num_kv_heads
        qkv = linear(normed, layer.qkv.values, self._biases[index])
        parts = qkv.view(self._rows, heads + 2 * kv_heads, -1)
        rotated = self._rotated(parts[:, : heads + kv_heads])
        keys, values = self._cache[index]
        keys[:, :, self._place] = rotated[:, heads:].transpose(0, 1)[:, None]
        values[:, :, self._place] = parts[:, heads + kv_heads :].transpose(0, 1)[:, None]
        attended = scaled_dot_product_attention(
            rotated[:, :heads].transpose(0, 1)[None],
            keys.flatten(0, 1)[None],
            values.flatten(0, 1)[None],
            attn_mask=self._mask,
            enable_gqa=self._is_shared,
        )
        return attended[0].transpose(0, 1).reshape(self._rows, -1)

    def _rotated(self, heads: torch.Tensor) -> torch.Tensor:
        swapped = heads.roll(heads.shape[-1] // 2, dims=-1)
        return (heads * self._cos).addcmul_(swapped, self._sin)

    def _normed(self, rows: torch.Tensor, norm_weight: torch.Tensor) -> torch.Tensor:
        return rms_norm(rows, norm_weight.shape, norm_weight, self._config.rms_norm_eps)
