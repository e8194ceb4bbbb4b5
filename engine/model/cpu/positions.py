"""Data by position for our forward passes: a sequence's keys and values, and rotary angles."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from engine.memory import sparse_zeros
from engine.model.model_config import ModelConfig
from kernels.cpu_forward import SLOTS

_STEP = 1024  # positions that the tables grow by: the tokens of a usual prompt


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
    """Keys and values, float [layers, kv heads, slots, width]. Steps write from `length` on."""

    def __init__(self, config: ModelConfig, capacity: int, dtype: np.dtype, width: int) -> None:
        """`width` is at least the size of a head; attention may need padding."""
        slots = -(-capacity // SLOTS) * SLOTS
        shape = (config.num_layers, config.num_kv_heads, slots, width)
        self.keys, self.values = (sparse_zeros(shape, dtype.type) for _ in range(2))
        self.capacity = capacity
        self.length = self._most = 0  # tokens: committed now, and ever

    @property
    def num_bytes(self) -> int:
        """Return the memory of the places that were ever used: no other takes any."""
        return self.token_bytes * self._most

    @property
    def token_bytes(self) -> int:
        """Return the memory of one token."""
        return int(self.keys.nbytes + self.values.nbytes) // int(self.keys.shape[2])

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step. Rows ascend, so each only moves down."""
        if list(rows) != list(range(len(rows))):
            source = np.array(rows) + self.length
            target = slice(self.length, self.length + len(rows))
            for held in (self.keys, self.values):
                held[:, :, target] = held[:, :, source]
        self.length += len(rows)
        self._most = max(self._most, self.length)

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        self.length = length

    def copy_from(self, other: Self, length: int) -> None:
        """Copy the first `length` tokens of `other`, which has as many."""
        self.keys[:, :, :length] = other.keys[:, :, :length]
        self.values[:, :, :length] = other.values[:, :, :length]
        self.length = length
        self._most = max(self._most, length)
