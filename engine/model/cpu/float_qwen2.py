"""Qwen2, Qwen2.5 and Llama in floating point on the CPU: our forward pass over a static KV cache.

Shapes: R rows of a step, H hidden size, d head size.
Reference, also of the tests: `modeling_qwen2.py` and `modeling_llama.py` of transformers.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch.nn import functional

from engine.model.causal_lm import StepInput
from engine.model.cpu.positions import KVSlot, Rotary
from engine.model.eager import EagerModel, Logits
from engine.model.model_config import ModelConfig

Angles = tuple[torch.Tensor, torch.Tensor]  # cosines and sines, [R, 1, d / 2]


class FloatQwen2(EagerModel):
    """A float model, packed by `pack_own_forms`. A row's bits may depend on the rows beside it."""

    device = "cpu"

    def __init__(
        self, config: ModelConfig, tensors: Mapping[str, torch.Tensor], dtype_name: str
    ) -> None:
        self.config = config
        self.dtype_name = dtype_name
        self.vocab_size = config.vocab_size
        self.max_context = config.max_position
        self._tensors = tensors
        # Float64 weights exist only in tests, as exact arithmetic.
        held_as = tensors["embedding"].dtype
        self._dtype = np.dtype("float64" if held_as == torch.float64 else "float32")
        self._rotary = Rotary(config, self._dtype)

    def new_slot(self, capacity: int) -> KVSlot:
        """Return an empty slot for `capacity` tokens."""
        return KVSlot(self.config, capacity, self._dtype, self.config.head_dim)

    @torch.inference_mode()
    def _forward(self, step: StepInput) -> Logits:
        """Write keys and values; return logits float32 [R, vocab], unusable without a head."""
        tree, slot = step.tree, step.slot
        seen = torch.ones(tree.num_rows, slot.length, dtype=torch.bool)
        mask = torch.cat([seen, torch.from_numpy(tree.ancestors)], dim=1)
        cosines, sines = (
            torch.from_numpy(table)[:, None] for table in self._rotary.at(tree.depths + slot.length)
        )
        x = self._tensors["embedding"][torch.from_numpy(tree.token_ids)]  # [R, H]
        x = x.double() if self._dtype == np.float64 else x.float()
        for layer in range(self.config.num_layers):
            name = f"layers.{layer}"
            heads = self._linear(f"{name}.qkv", self._norm(x, f"{name}.qkv"))
            attended = self._attend(heads, slot, layer, mask, (cosines, sines))
            x = x + self._linear(f"{name}.o", attended)
            pairs = self._linear(f"{name}.gate_up", self._norm(x, f"{name}.gate_up"))
            gate, up = pairs.chunk(2, dim=-1)
            x = x + self._linear(f"{name}.down", functional.silu(gate) * up)
        if not step.has_head:
            return Logits(x.numpy())
        return Logits(self._linear("head", self._norm(x, "head")).float().numpy())

    def _attend(
        self, heads: torch.Tensor, kv: KVSlot, layer: int, mask: torch.Tensor, angles: Angles
    ) -> torch.Tensor:
        rows, c = heads.shape[0], self.config
        heads = heads.view(rows, c.num_heads + 2 * c.num_kv_heads, c.head_dim)
        rotated = _rotate(heads[:, : c.num_heads + c.num_kv_heads], *angles)
        end = kv.length + rows
        keys, values = torch.from_numpy(kv.keys[layer]), torch.from_numpy(kv.values[layer])
        keys[:, kv.length : end] = rotated[:, c.num_heads :].transpose(0, 1)
        values[:, kv.length : end] = heads[:, -c.num_kv_heads :].transpose(0, 1)
        out = functional.scaled_dot_product_attention(
            rotated[None, :, : c.num_heads].transpose(1, 2),
            keys[None, :, :end],
            values[None, :, :end],
            attn_mask=mask,
            enable_gqa=True,
        )
        return out[0].transpose(0, 1).reshape(rows, -1)

    def _linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """Multiply float32 [R, in] to [R, out] in the weights' type."""
        tied = self._tensors["embedding"]  # for a head without its own weights
        weight = self._tensors.get(f"{name}.weight", tied)
        bias = self._tensors.get(f"{name}.bias")
        bias = None if bias is None else bias.to(weight.dtype)
        return functional.linear(x.to(weight.dtype), weight, bias).to(x.dtype)

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        gain = self._tensors[f"{name}.norm"]
        return functional.rms_norm(x, x.shape[-1:], gain, self.config.rms_norm_eps)


def _rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Apply the rotary embedding to [R, heads, d]; the halves of d form the pairs."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
