"""The key and value cache for models that transformers runs."""

from collections.abc import Sequence
from typing import Self

import torch
from transformers import Cache


class SlotCache(Cache):
    """One sequence's keys and values, [1, kv heads, capacity, d] per layer.

    Layers with a sliding window also keep all keys: the mask hides them, truncation restores them.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(layers=[])
        self.capacity = capacity
        self.length = 0
        self._buffers: dict[int, list[torch.Tensor]] = {}

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *_args: object,
        **_kwargs: object,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one layer's rows and return all keys and values that they may attend to."""
        keys, values = self._layer(layer_idx, [key_states, value_states])
        end = self.length + key_states.shape[2]
        keys[:, :, self.length : end] = key_states
        values[:, :, self.length : end] = value_states
        return keys[:, :, :end], values[:, :, :end]

    def _layer(self, layer_idx: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        if layer_idx not in self._buffers:
            self._buffers[layer_idx] = [
                one.new_zeros(*one.shape[:2], self.capacity, one.shape[3]) for one in like
            ]
        return self._buffers[layer_idx]

    @torch.inference_mode()
    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step."""
        if list(rows) != list(range(len(rows))):
            source = torch.tensor([self.length + row for row in rows])
            for buffer in (half for pair in self._buffers.values() for half in pair):
                moved = buffer.index_select(2, source.to(buffer.device))
                buffer[:, :, self.length : self.length + len(rows)] = moved
        self.length += len(rows)

    @property
    def num_bytes(self) -> int:
        """Return the bytes of the buffers."""
        return sum(half.nbytes for pair in self._buffers.values() for half in pair)

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        self.length = length

    @torch.inference_mode()
    def copy_from(self, other: Self, length: int) -> None:
        """Copy the first `length` tokens of `other`, which has as many."""
        for layer_idx, pair in other._buffers.items():
            for own, half in zip(self._layer(layer_idx, pair), pair, strict=True):
                own[:, :, :length] = half[:, :, :length]
        self.length = length

    @property
    def num_layers(self) -> int:
        """Return the number of layers that have keys."""
        return len(self._buffers)

    # All layers have the same length, so these ignore the layer's index.
    def get_seq_length(self, layer_idx: int = 0) -> int:  # noqa: ARG002  see above
        """Return the number of committed tokens; the same in every layer."""
        return self.length

    def get_mask_sizes(
        self,
        query_length: int,
        layer_idx: int = 0,  # noqa: ARG002  see above
    ) -> tuple[int, int]:
        """Return the number of keys that `query_length` rows attend to, and the first's index."""
        return self.length + query_length, 0

    def get_max_length(self, layer_idx: int | None = None) -> int:  # noqa: ARG002  see above
        """Return the number of tokens that fit."""
        return self.capacity
