"""Qwen2 and Qwen2.5 of any size: our own forward over a static KV cache.

Shapes: R rows of a step, H hidden size, h query heads, k key-value heads, d head size.
Reference: `modeling_qwen2.py` of transformers, which the tests compare with.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from engine.model.causal_lm import StepInput, check_room
from engine.model.cpu.kv_slot import KVSlot
from engine.model.cpu.linear import Linear, make_linear
from engine.model.eager import EagerFlight
from engine.model.model_config import ModelConfig
from kernels.tree_attention import TreePlan, tree_attention

# torch splits longer elementwise loops over its threads at places that depend on the length,
# and the ends of the pieces are computed by other code, with other last bits.
_UNSPLIT_ELEMENTS = 32768


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Linear
    o: Linear
    gate_up: Linear
    down: Linear
    qkv_gain: torch.Tensor | None  # None where the gain is folded into the weights
    gate_up_gain: torch.Tensor | None


class Qwen2:
    """The model. `tensors` are those of one variant of `engine.model.loading.packing`."""

    device = "cpu"
    row_buckets: tuple[int, ...] = ()
    max_sequences = 1
    reserved_bytes = 0

    def __init__(
        self, config: ModelConfig, tensors: Mapping[str, torch.Tensor], dtype_name: str
    ) -> None:
        self.config = config
        self.dtype_name = dtype_name
        self.vocab_size = config.vocab_size
        self.max_context = config.max_position
        self._embedding = tensors["embedding"]
        self._head_gain = tensors.get("head.norm")
        tied = {"head.weight": self._embedding} if "head.weight" not in tensors else {}
        names = [f"layers.{i}" for i in range(config.num_layers)]
        with ThreadPoolExecutor(max_workers=2) as packers:  # each packs on one core
            head = packers.submit(make_linear, "head", {**tensors, **tied})
            self._layers = list(packers.map(partial(_read_layer, tensors), names))
            self._head = head.result()
        # Float64 weights exist in tests only, where they stand for exact arithmetic.
        self._dtype = torch.float64 if self._embedding.dtype == torch.float64 else torch.float32
        steps = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
        self._frequencies = config.rope_theta**-steps

    def new_slot(self, capacity: int) -> KVSlot:
        """Return an empty slot for `capacity` tokens."""
        return KVSlot(self.config, capacity, self._dtype)

    def begin(self, steps: Sequence[StepInput]) -> EagerFlight:
        """Check that the steps' rows have room; the work is done when their outputs are wanted."""
        check_room(steps)
        return EagerFlight(steps, self._forward)

    @torch.inference_mode()
    def _forward(self, step: StepInput) -> torch.Tensor:
        """Logits float32 [R, vocab], or nothing of use without a head; writes keys and values."""
        tree, kv = step.tree, step.slot
        plan = TreePlan(tree.parents, kv.length)
        rotary = self._rotary(torch.from_numpy(tree.depths) + kv.length)
        x = self._embedding[torch.from_numpy(tree.token_ids)].to(self._dtype)  # [R, H]
        for index, layer in enumerate(self._layers):
            x = x + self._attend(self._norm(x, layer.qkv_gain), layer, index, kv, plan, rotary)
            x = x + _swiglu(self._norm(x, layer.gate_up_gain), layer)
        if not step.has_head:
            return x
        return self._head(self._norm(x, self._head_gain)).float()

    def _attend(
        self,
        x: torch.Tensor,
        layer: _Layer,
        index: int,
        kv: KVSlot,
        plan: TreePlan,
        rotary: tuple[torch.Tensor, torch.Tensor],
    ) -> torch.Tensor:
        rows, c = x.shape[0], self.config
        heads = layer.qkv(x).view(rows, c.num_heads + 2 * c.num_kv_heads, c.head_dim)
        rotated = _rotate(heads[:, : c.num_heads + c.num_kv_heads], *rotary)
        flight = slice(kv.length, kv.length + rows)
        kv.keys[index, :, flight] = rotated[:, c.num_heads :].transpose(0, 1)
        kv.values[index, :, flight] = heads[:, c.num_heads + c.num_kv_heads :].transpose(0, 1)
        queries = rotated[:, : c.num_heads]
        out = tree_attention(queries, kv.keys[index], kv.values[index], plan)
        return layer.o(out.view(rows, -1))

    def _norm(self, x: torch.Tensor, gain: torch.Tensor | None) -> torch.Tensor:
        return functional.rms_norm(x, x.shape[-1:], gain, self.config.rms_norm_eps)

    def _rotary(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the rotary embedding, [R, 1, d / 2] each."""
        angles = torch.outer(positions.double(), self._frequencies)[:, None]
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)


def _read_layer(tensors: Mapping[str, torch.Tensor], name: str) -> _Layer:
    return _Layer(
        qkv=make_linear(f"{name}.qkv", tensors),
        o=make_linear(f"{name}.o", tensors),
        gate_up=make_linear(f"{name}.gate_up", tensors),
        # What comes out of SwiGLU has outliers that no fixed rotation spreads.
        down=make_linear(f"{name}.down", tensors, fine=True),
        qkv_gain=tensors.get(f"{name}.qkv.norm"),
        gate_up_gain=tensors.get(f"{name}.gate_up.norm"),
    )


def _rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of [R, heads, d]; the halves of d form the pairs."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)


def _swiglu(x: torch.Tensor, layer: _Layer) -> torch.Tensor:
    gate, up = layer.gate_up(x).chunk(2, dim=-1)
    for piece in gate.split(max(1, _UNSPLIT_ELEMENTS // gate.shape[1])):
        functional.silu(piece, inplace=True)
    return layer.down(gate.mul_(up))
