"""GPUs as their makers' data sheets describe them: what a step's time is computed from."""

from dataclasses import dataclass, replace
from typing import Self

from engine.model.device import DeviceChoice, free_bytes, memory_bandwidth

_GIGA, _GIBIBYTE = 1e9, 1 << 30
_TAKEN_BYTES = 700_000_000  # of a card by its driver and a desktop
_ATTAINED = 0.9  # of the data sheet's bandwidth: what a copy reaches on an H200, assumed elsewhere
_CACHE_OF_MEMORY = 3.0  # the L2 cache's bandwidth over the memory's, assumed where not stated
_GIGAHERTZ = {
    80: 1.41,
    86: 1.7,
    89: 2.45,
    90: 1.75,
    100: 1.85,
    120: 2.4,
    121: 2.4,
}  # by architecture
# Operations of a multiprocessor's tensor cores in a cycle, on bfloat16 with sums in float32. Cards
# for workstations have twice those of GeForce in 86 and 89.
_TENSOR_OPERATIONS = {80: 2048, 86: 512, 89: 512, 90: 4096, 100: 8192, 120: 512, 121: 512}
_READ_BYTES = 64  # that a multiprocessor takes from the L2 cache in a cycle at most
_ISSUED = 4  # instructions of warps that a multiprocessor begins in a cycle


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU: its compute capability (86 is 8.6), its memory in GiB and its bandwidths in GB/s.

    `free` is the memory in bytes that a model may take, `has_kernels` whether ours run there.
    """

    name: str
    architecture: int
    memory_gib: float
    memory_gb_s: float
    multiprocessors: int
    cache_gb_s: float = 0.0
    free: int = 0
    has_kernels: bool = True

    @classmethod
    def of(cls, choice: DeviceChoice) -> Self:
        """The GPU that was chosen, as it is now; of what torch does not say a card that is like it."""
        free, told = free_bytes(choice.device), memory_bandwidth(choice.device)
        card = find_card(choice.name) or _nearest(free)
        return cls(
            name=choice.name,
            architecture=card.architecture,
            memory_gib=card.memory_gib,
            memory_gb_s=told / _GIGA or card.memory_gb_s,
            multiprocessors=card.multiprocessors,
            cache_gb_s=card.cache_gb_s,
            free=free,
            has_kernels=choice.has_kernels,
        )

    @property
    def bandwidth(self) -> float:
        """Bytes a second that memory gives at best."""
        return self.memory_gb_s * _ATTAINED * _GIGA

    @property
    def cache_bandwidth(self) -> float:
        """Bytes a second of the L2 cache."""
        return (self.cache_gb_s or _CACHE_OF_MEMORY * self.memory_gb_s) * _GIGA

    @property
    def program_bandwidth(self) -> float:
        """Bytes a second that one multiprocessor reads at most."""
        return _READ_BYTES * _GIGAHERTZ[self.architecture] * _GIGA

    @property
    def issue_rate(self) -> float:
        """Instructions of warps that all multiprocessors begin in a second."""
        return self._cycles * _ISSUED

    @property
    def tensor_rate(self) -> float:
        """Multiplications and additions a second of the tensor cores."""
        return self._cycles * _TENSOR_OPERATIONS[self.architecture]

    @property
    def _cycles(self) -> float:
        """Cycles of all multiprocessors in a second."""
        return self.multiprocessors * _GIGAHERTZ[self.architecture] * _GIGA


def _sold(card: Card) -> Card:
    """A card as its maker describes it, with nothing else on it."""
    return replace(card, free=int(card.memory_gib * _GIBIBYTE) - _TAKEN_BYTES)


CARDS = tuple(
    _sold(Card(*row))
    for row in (
        ("A100-SXM4-40GB", 80, 40, 1555, 108, 4000),
        ("A100-PCIE-40GB", 80, 40, 1555, 108, 4000),
        ("A100", 80, 80, 2039, 108, 4000),
        ("A10", 86, 24, 600, 72),
        ("RTX A6000", 86, 48, 768, 84),
        ("L4", 89, 24, 300, 58),
        ("L40S", 89, 48, 864, 142),
        ("RTX 6000 Ada", 89, 48, 960, 142),
        ("H100", 90, 80, 3350, 132, 5500),
        ("H100 PCIe", 90, 80, 2039, 114, 5500),
        ("H200", 90, 140, 4800, 132, 5500),
        ("B200", 100, 180, 8000, 148, 10000),
        ("GB10", 121, 128, 273, 48),
        ("RTX 3050", 86, 8, 224, 20),
        ("RTX 3060", 86, 12, 360, 28),
        ("RTX 3060 Ti", 86, 8, 448, 38),
        ("RTX 3070", 86, 8, 448, 46),
        ("RTX 3070 Ti", 86, 8, 608, 48),
        ("RTX 3080", 86, 10, 760, 68),
        ("RTX 3080 Ti", 86, 12, 912, 80),
        ("RTX 3090", 86, 24, 936, 82),
        ("RTX 3090 Ti", 86, 24, 1008, 84),
        ("RTX 4060", 89, 8, 272, 24),
        ("RTX 4060 Ti", 89, 16, 288, 34),
        ("RTX 4070", 89, 12, 504, 46),
        ("RTX 4070 Ti", 89, 12, 504, 60),
        ("RTX 4070 Ti SUPER", 89, 16, 672, 66),
        ("RTX 4080", 89, 16, 717, 76),
        ("RTX 4080 SUPER", 89, 16, 736, 80),
        ("RTX 4090", 89, 24, 1008, 128),
        ("RTX 5060", 120, 8, 448, 30),
        ("RTX 5060 Ti", 120, 16, 448, 36),
        ("RTX 5070", 120, 12, 672, 48),
        ("RTX 5070 Ti", 120, 16, 896, 70),
        ("RTX 5080", 120, 16, 960, 84),
        ("RTX 5090", 120, 32, 1792, 170),
        ("RTX 3050 Laptop", 86, 4, 192, 16),
        ("RTX 3060 Laptop", 86, 6, 336, 30),
        ("RTX 3070 Laptop", 86, 8, 448, 40),
        ("RTX 3080 Laptop", 86, 8, 448, 48),
        ("RTX 3080 Ti Laptop", 86, 16, 512, 58),
        ("RTX 4050 Laptop", 89, 6, 192, 20),
        ("RTX 4060 Laptop", 89, 8, 256, 24),
        ("RTX 4070 Laptop", 89, 8, 256, 36),
        ("RTX 4080 Laptop", 89, 12, 432, 58),
        ("RTX 4090 Laptop", 89, 16, 576, 76),
        ("RTX 5060 Laptop", 120, 8, 384, 26),
        ("RTX 5070 Laptop", 120, 8, 384, 36),
        ("RTX 5070 Ti Laptop", 120, 12, 672, 46),
        ("RTX 5080 Laptop", 120, 16, 896, 60),
        ("RTX 5090 Laptop", 120, 24, 896, 82),
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
