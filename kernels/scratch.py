"""Working memory that the kernels of a model share: each leaves it as it found it."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import torch


class ScratchSize(NamedTuple):
    """Numbers and counters of a `Scratch`."""

    num_partials: int
    num_counters: int


@dataclass(frozen=True, slots=True)
class Scratch:
    """`partials` float32 [n] holds sums of splits; `arrived` int32 [m] counts them, else zero.

    Kernels of one stream may share it, since they run one after the other.
    """

    partials: torch.Tensor
    arrived: torch.Tensor

    @classmethod
    def allocate(cls, num_partials: int, num_counters: int, device: torch.device) -> Self:
        """Take the memory."""
        return cls(
            torch.zeros(num_partials, dtype=torch.float32, device=device),
            torch.zeros(num_counters, dtype=torch.int32, device=device),
        )

    def clear(self) -> None:
        """Reset it after a kernel that did not end."""
        self.partials.zero_()
        self.arrived.zero_()
