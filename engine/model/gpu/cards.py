"""GPUs as their makers' data sheets describe them: how much they hold, and how fast they read it."""

from dataclasses import dataclass, replace
from typing import Self

from engine.model.device import DeviceChoice, free_bytes, memory_bandwidth

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
        """The GPU that was chosen, as it is now; of what torch does not say a card that is like it."""
        free, told = free_bytes(choice.device), memory_bandwidth(choice.device)
        card = find_card(choice.name) or _nearest(free)
        bandwidth = told / _GIGA or card.memory_gb_s
        return cls(choice.name, card.memory_gib, bandwidth, free, choice.has_kernels)

    def reading_ms(self, num_bytes: float) -> float:
        """How long it takes to read so many bytes of its memory, at the least."""
        return 1000 * num_bytes / (self.memory_gb_s * _GIGA)


def _sold(card: Card) -> Card:
    """A card as its maker describes it, with nothing else on it."""
    return replace(card, free=int(card.memory_gib * _GIBIBYTE) - _TAKEN_BYTES)


CARDS = tuple(
    _sold(Card(*row))
    for row in (
        ("A100-SXM4-40GB", 40, 1555),
        ("A100-PCIE-40GB", 40, 1555),
        ("A100", 80, 2039),
        ("A10", 24, 600),
        ("RTX A6000", 48, 768),
        ("L4", 24, 300),
        ("L40S", 48, 864),
        ("RTX 6000 Ada", 48, 960),
        ("H100", 80, 3350),
        ("H100 PCIe", 80, 2039),
        ("H200", 140, 4800),
        ("B200", 180, 8000),
        ("GB10", 128, 273),
        ("RTX 3050", 8, 224),
        ("RTX 3060", 12, 360),
        ("RTX 3060 Ti", 8, 448),
        ("RTX 3070", 8, 448),
        ("RTX 3070 Ti", 8, 608),
        ("RTX 3080", 10, 760),
        ("RTX 3080 Ti", 12, 912),
        ("RTX 3090", 24, 936),
        ("RTX 3090 Ti", 24, 1008),
        ("RTX 4060", 8, 272),
        ("RTX 4060 Ti", 16, 288),
        ("RTX 4070", 12, 504),
        ("RTX 4070 Ti", 12, 504),
        ("RTX 4070 Ti SUPER", 16, 672),
        ("RTX 4080", 16, 717),
        ("RTX 4080 SUPER", 16, 736),
        ("RTX 4090", 24, 1008),
        ("RTX 5060", 8, 448),
        ("RTX 5060 Ti", 16, 448),
        ("RTX 5070", 12, 672),
        ("RTX 5070 Ti", 16, 896),
        ("RTX 5080", 16, 960),
        ("RTX 5090", 32, 1792),
        ("RTX 3050 Laptop", 4, 192),
        ("RTX 3060 Laptop", 6, 336),
        ("RTX 3070 Laptop", 8, 448),
        ("RTX 3080 Laptop", 8, 448),
        ("RTX 3080 Ti Laptop", 16, 512),
        ("RTX 4050 Laptop", 6, 192),
        ("RTX 4060 Laptop", 8, 256),
        ("RTX 4070 Laptop", 8, 256),
        ("RTX 4080 Laptop", 12, 432),
        ("RTX 4090 Laptop", 16, 576),
        ("RTX 5060 Laptop", 8, 384),
        ("RTX 5070 Laptop", 8, 384),
        ("RTX 5070 Ti Laptop", 12, 672),
        ("RTX 5080 Laptop", 16, 896),
        ("RTX 5090 Laptop", 24, 896),
    )
)


def find_card(device_name: str) -> Card | None:
    """Return the card that a driver's name is of ("NVIDIA GeForce RTX 4090 Laptop GPU"), if known."""
    words = f" {device_name.lower()} ".replace("-", " ")

    def is_named(card: Card) -> bool:
        return f" {card.name.lower().replace('-', ' ')} " in words

    return max(filter(is_named, CARDS), key=lambda card: len(card.name), default=None)


def card_named(name: str) -> Card:
    """The card of exactly this name. Raises StopIteration where there is none."""
    return next(card for card in CARDS if card.name == name)


def _nearest(free: int) -> Card:
    """The card whose memory is nearest, of equals the one that is slowest."""
    return min(CARDS, key=lambda card: (abs(card.free - free), card.memory_gb_s))
