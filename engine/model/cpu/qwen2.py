"""Qwen2 and Qwen2.5 of any size: our own forward over a static KV cache.

Shapes: R rows of a step, H hidden size, h query heads, k key-value heads, d head size.
Reference: `modeling_qwen2.py` of transformers, which the tests compare with.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch.nn import functional

from engine.model.cpu.kv_slot import KVSlot
from engine.model.cpu.linear import Linear, make_linear
from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS, TokenTree
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
    num_lanes = 1
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

    def expect(self, num_running: int) -> None:
        """Each sequence has its steps for itself."""

    def new_slot(self, capacity: int) -> "Qwen2Slot":
        """Return an empty slot for `capacity` tokens."""
        return Qwen2Slot(self, KVSlot(self.config, capacity, self._dtype))

    @torch.inference_mode()
    def forward(self, tree: TokenTree, kv: KVSlot, *, head_rows: slice) -> torch.Tensor:
        """Logits of `head_rows`, float32 [., vocab]; writes the rows' keys and values behind kv."""
        plan = TreePlan(tree.parents, kv.length)
        positions = torch.from_numpy(tree.depths) + kv.length
        turns = self._turns(positions)
        x = self._embedding[torch.from_numpy(tree.token_ids)].to(self._dtype)  # [R, H]
        for index, layer in enumerate(self._layers):
            x = x + self._attend(self._norm(x, layer.qkv_gain), layer, index, kv, plan, turns)
            x = x + _swiglu(self._norm(x, layer.gate_up_gain), layer)
        return self._head(self._norm(x[head_rows], self._head_gain)).float()

    def _attend(
        self,
        x: torch.Tensor,
        layer: _Layer,
        index: int,
        kv: KVSlot,
        plan: TreePlan,
        turns: tuple[torch.Tensor, torch.Tensor],
    ) -> torch.Tensor:
        rows, c = x.shape[0], self.config
        heads = layer.qkv(x).view(rows, c.num_heads + 2 * c.num_kv_heads, c.head_dim)
        rotated = _rotate(heads[:, : c.num_heads + c.num_kv_heads], *turns)
        flight = slice(kv.length, kv.length + rows)
        kv.keys[index, :, flight] = rotated[:, c.num_heads :].transpose(0, 1)
        kv.values[index, :, flight] = heads[:, c.num_heads + c.num_kv_heads :].transpose(0, 1)
        queries = rotated[:, : c.num_heads]
        out = tree_attention(queries, kv.keys[index], kv.values[index], plan)
        return layer.o(out.view(rows, -1))

    def _norm(self, x: torch.Tensor, gain: torch.Tensor | None) -> torch.Tensor:
        return functional.rms_norm(x, x.shape[-1:], gain, self.config.rms_norm_eps)

    def _turns(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the rotary embedding, [R, 1, d / 2] each."""
        angles = torch.outer(positions.double(), self._frequencies)[:, None]
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)


class Qwen2Slot:
    """One sequence of a Qwen2 model; a `CacheSlot`."""

    def __init__(self, model: Qwen2, kv: KVSlot) -> None:
        self._model, self._kv = model, kv
        self.commit, self.truncate = kv.commit, kv.truncate

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self._kv.length

    @property
    def capacity(self) -> int:
        """Tokens that fit, committed and in flight."""
        return self._kv.capacity

    @property
    def num_bytes(self) -> int:
        """Memory of its keys and values."""
        return self._kv.num_bytes

    def copy_from(self, other: Self, length: int) -> None:
        """Hold the first `length` tokens of `other`."""
        self._kv.copy_from(other._kv, length)

    def prefill(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Commit `token_ids`, at most 128 in one pass; logits of the last, float32 [1, vocab]."""
        for start in range(0, len(token_ids), MAX_ROWS):
            logits = self._prefill_piece(token_ids[start : start + MAX_ROWS])
        return logits

    def step(self, tree: TokenTree) -> torch.Tensor:
        """Logits of every row, float32 [rows, vocab]; nothing is committed yet."""
        self._check_room(tree.num_rows)
        return self._model.forward(tree, self._kv, head_rows=slice(None))

    def _prefill_piece(self, token_ids: Sequence[int]) -> torch.Tensor:
        self._check_room(len(token_ids))
        tree = TokenTree.chain(token_ids)
        logits = self._model.forward(tree, self._kv, head_rows=slice(-1, None))
        self._kv.commit(range(len(token_ids)))
        return logits

    def _check_room(self, rows: int) -> None:
        if self.length + rows > self.capacity:
            raise ValueError(f"{self.length} + {rows} tokens exceed the slot's {self.capacity}")


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
