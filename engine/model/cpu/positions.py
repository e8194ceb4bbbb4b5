"""Data by position for our forward passes: a sequence's keys and values, and rotary angles."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch

from engine.model.model_config import ModelConfig
from kernels.cpu_forward import SLOTS

_STEP = 1024  # positions that the tables grow by


class Rotary:
    """Cosines and sines by position, computed in float64 as far as needed."""

    def __init__(self, config: ModelConfig, dtype: np.dtype) -> None:
        steps = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
        self._frequencies = config.rope_theta**-steps
        self._cosines = self._sines = np.empty((0, len(steps)), dtype)

    def at(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return cosines and sines, each [rows, head_dim / 2], for int64 `positions` [rows]."""
        if (last := int(positions.max())) >= len(self._cosines):
            angles = np.outer(np.arange((last // _STEP + 1) * _STEP), self._frequencies)
            self._cosines = np.cos(angles).astype(self._cosines.dtype)
            self._sines = np.sin(angles).astype(self._sines.dtype)
        return self._cosines[positions], self._sines[positions]


class KVSlot:
    """`keys` and `values` float [layers, kv heads, slots, width]; position p of the text is slot p.

    A step writes its rows at slots length..length+rows-1; `commit` moves the accepted path down.
    """

    def __init__(self, config: ModelConfig, capacity: int, dtype: torch.dtype, width: int) -> None:
        """`width` is at least the size of a head; attention may need padding."""
        slots = -(-capacity // SLOTS) * SLOTS
        shape = (config.num_layers, config.num_kv_heads, slots, width)
        self.keys, self.values = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
        self._num_bytes = self.keys.nbytes + self.values.nbytes  # read often, for all slots
        self.capacity = capacity
        self.length = 0

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step. Rows ascend, so each only moves down."""
        if list(rows) != list(range(len(rows))):
            source = torch.tensor(rows) + self.length
            target = slice(self.length, self.length + len(rows))
            for held in (self.keys, self.values):
                held[:, :, target] = held[:, :, source]
        self.length += len(rows)

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on. Raises ValueError if the slot is shorter."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} tokens to {length}")
        self.length = length

    @property
    def num_bytes(self) -> int:
        """Return the bytes of keys and values."""
        return self._num_bytes

    def copy_from(self, other: Self, length: int) -> None:
        """Copy the first `length` tokens of `other`. Raises ValueError if either is too short."""
        if not 0 <= length <= min(other.length, self.capacity):
            raise ValueError(f"cannot copy {length} of {other.length} tokens to {self.capacity}")
        self.keys[:, :, :length] = other.keys[:, :, :length]
        self.values[:, :, :length] = other.values[:, :, :length]
        self.length = length
