"""The memory of all keys and values: one range of positions per slot.

Its address is fixed, since captured steps contain it.
"""

from bisect import insort

import torch

from engine.errors import NoSpaceError
from engine.model.model_config import ModelConfig

POSITION_STEP = 64  # slots begin at multiples of this: as many as an attention tile has keys


class KVArena:
    """`keys`, `values` [layers, kv heads, positions, d]."""

    def __init__(
        self, config: ModelConfig, positions: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        shape = (config.num_layers, config.num_kv_heads, positions, config.head_dim)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self._taken: list[tuple[int, int]] = []  # ranges, ascending

    @property
    def positions(self) -> int:
        """Return the number of tokens that fit."""
        return self.keys.shape[2]

    @property
    def bytes_per_position(self) -> int:
        """Return the bytes of one token's keys and values."""
        return 2 * self.keys.nbytes // self.positions

    @property
    def free_positions(self) -> int:
        """Return the number of positions that no slot uses."""
        return self.positions - sum(end - start for start, end in self._taken)

    def take(self, count: int) -> int:
        """Reserve `count` adjacent positions and return the first. Raises NoSpaceError."""
        count, end = rounded(count), self.positions
        start = 0
        for taken, behind in [*self._taken, (end, end)]:
            if taken - start >= count:
                insort(self._taken, (start, start + count))
                return start
            start = behind
        raise NoSpaceError(
            f"no room for the keys and values of {count:,} tokens: {self.free_positions:,} of "
            f"{self.positions:,} are free"
        )

    def give_back(self, start: int, count: int) -> None:
        """Free what `take` reserved."""
        self._taken.remove((start, start + rounded(count)))


def rounded(count: int) -> int:
    """Return the positions that a slot of `count` tokens takes."""
    return -(-count // POSITION_STEP) * POSITION_STEP
