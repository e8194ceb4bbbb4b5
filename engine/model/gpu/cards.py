"""GPUs: how much they hold, and how fast that can be read."""

from dataclasses import dataclass
from typing import Self

from engine.model.device import DeviceChoice, free_bytes, memory_bandwidth, total_bytes

_GIGA, _GIBIBYTE = 1e9, 1 << 30
_TAKEN_BYTES = 700_000_000  # of a card by its driver and a desktop


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU: its memory in GiB, and the GB/s at which that can be read.

    `free` is the memory in bytes that a model may take, `has_kernels` whether ours run there.
    """

    name: str
    memory_gib: float
    memory_gb_s: float
    free: int = 0
    has_kernels: bool = True

    @classmethod
    def of(cls, choice: DeviceChoice) -> Self:
        """The GPU that was chosen, as it is now, as fast as a card of its size if torch does not say."""
        memory = total_bytes(choice.device) / _GIBIBYTE
        like = min(PLANNED_CARDS, key=lambda card: abs(card.memory_gib - memory))
        bandwidth = memory_bandwidth(choice.device) / _GIGA or like.memory_gb_s
        return cls(choice.name, memory, bandwidth, free_bytes(choice.device), choice.has_kernels)

    def reading_ms(self, num_bytes: float) -> float:
        """How long it takes to read so many bytes of its memory, at the least."""
        return 1000 * num_bytes / (self.memory_gb_s * _GIGA)


def _sold(name: str, memory_gib: float, memory_gb_s: float) -> Card:
    """A card as its maker's data sheet describes it, with nothing else on it."""
    return Card(name, memory_gib, memory_gb_s, int(memory_gib * _GIBIBYTE) - _TAKEN_BYTES)


PLANNED_CARDS = (
    _sold("RTX 4060", 8, 272),
    _sold("RTX 4070", 12, 504),
    _sold("RTX 4060 Ti", 16, 288),
    _sold("RTX 4090", 24, 1008),
    _sold("RTX A6000", 48, 768),
    _sold("A100", 80, 2039),
    _sold("H200", 140, 4800),
)
