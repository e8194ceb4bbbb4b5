"""The memory of all keys and values: one range of positions per slot, at fixed addresses.

Captured steps know addresses, so slots may come and go, but the memory stays.
"""

from typing import Self

import torch

from engine.errors import NoSpaceError
from engine.model.model_config import ModelConfig

POSITION_STEP = 64  # slots begin at multiples of this


class KVArena:
    """`keys`, `values` [layers, kv heads, positions, d]."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values
        self._free = [(0, keys.shape[2])]  # ranges, ascending, never side by side

    @classmethod
    def allocate(
        cls, config: ModelConfig, positions: int, dtype: torch.dtype, device: torch.device
    ) -> Self:
        """Take the memory for `positions` tokens."""
        shape = (config.num_layers, config.num_kv_heads, positions, config.head_dim)
        return cls(*(torch.zeros(shape, dtype=dtype, device=device) for _ in range(2)))

    @property
    def bytes_per_position(self) -> int:
        """Memory of one token's keys and values."""
        return 2 * self.keys.nbytes // self.keys.shape[2]

    @property
    def free_positions(self) -> int:
        """Positions that no slot has."""
        return sum(end - start for start, end in self._free)

    def take(self, count: int) -> int:
        """Reserve `count` positions side by side, and return the first. Raises NoSpaceError."""
        count = rounded(count)
        for index, (start, end) in enumerate(self._free):
            if end - start >= count:
                self._free[index : index + 1] = (
                    [(start + count, end)] if end - start > count else []
                )
                return start
        raise NoSpaceError(
            f"no room for the keys and values of {count:,} tokens: {self.free_positions:,} of "
            f"{self.keys.shape[2]:,} are free"
        )

    def give_back(self, start: int, count: int) -> None:
        """Free what `take` reserved."""
        ranges = sorted([*self._free, (start, start + rounded(count))])
        joined = ranges[:1]
        for begin, end in ranges[1:]:
            if begin == joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((begin, end))
        self._free = joined


def rounded(count: int) -> int:
    """Positions that a slot of `count` tokens takes."""
    return -(-count // POSITION_STEP) * POSITION_STEP
