"""GPUs as their makers' data sheets describe them: what a step's time is computed from."""

from dataclasses import dataclass

_ATTAINED = 0.9  # of the data sheet's bandwidth: what a copy reaches on an H200, assumed elsewhere
_CACHE_OF_MEMORY = 3.0  # the L2 cache's bandwidth over the memory's, assumed where not stated
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class GraphicsCard:
    """A GPU: its compute capability (86 is 8.6), its memory in GB and its bandwidths in GB/s."""

    name: str
    architecture: int
    memory_gb: float
    memory_gb_s: float
    cache_gb_s: float = 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes a second that memory gives at best."""
        return self.memory_gb_s * _ATTAINED * _GIGA

    @property
    def cache_bandwidth(self) -> float:
        """Bytes a second of the L2 cache."""
        return (self.cache_gb_s or _CACHE_OF_MEMORY * self.memory_gb_s) * _GIGA


GRAPHICS_CARDS = tuple(
    GraphicsCard(*row)
    for row in (
        ("A100-SXM4-40GB", 80, 40, 1555, 4000),
        ("A100-PCIE-40GB", 80, 40, 1555, 4000),
        ("A100", 80, 80, 2039, 4000),
        ("A10", 86, 24, 600),
        ("L4", 89, 24, 300),
        ("L40S", 89, 48, 864),
        ("RTX 6000 Ada", 89, 48, 960),
        ("H100", 90, 80, 3350, 5500),
        ("H100 PCIe", 90, 80, 2039, 5500),
        ("H200", 90, 141, 4800, 5500),
        ("B200", 100, 180, 8000, 10000),
        ("GB10", 121, 128, 273),
        ("RTX 3050", 86, 8, 224),
        ("RTX 3060", 86, 12, 360),
        ("RTX 3060 Ti", 86, 8, 448),
        ("RTX 3070", 86, 8, 448),
        ("RTX 3070 Ti", 86, 8, 608),
        ("RTX 3080", 86, 10, 760),
        ("RTX 3080 Ti", 86, 12, 912),
        ("RTX 3090", 86, 24, 936),
        ("RTX 3090 Ti", 86, 24, 1008),
        ("RTX 4060", 89, 8, 272),
        ("RTX 4060 Ti", 89, 16, 288),
        ("RTX 4070", 89, 12, 504),
        ("RTX 4070 Ti", 89, 12, 504),
        ("RTX 4070 Ti SUPER", 89, 16, 672),
        ("RTX 4080", 89, 16, 717),
        ("RTX 4080 SUPER", 89, 16, 736),
        ("RTX 4090", 89, 24, 1008),
        ("RTX 5060", 120, 8, 448),
        ("RTX 5060 Ti", 120, 16, 448),
        ("RTX 5070", 120, 12, 672),
        ("RTX 5070 Ti", 120, 16, 896),
        ("RTX 5080", 120, 16, 960),
        ("RTX 5090", 120, 32, 1792),
        ("RTX 3050 Laptop", 86, 4, 192),
        ("RTX 3060 Laptop", 86, 6, 336),
        ("RTX 3070 Laptop", 86, 8, 448),
        ("RTX 3080 Laptop", 86, 8, 448),
        ("RTX 3080 Ti Laptop", 86, 16, 512),
        ("RTX 4050 Laptop", 89, 6, 192),
        ("RTX 4060 Laptop", 89, 8, 256),
        ("RTX 4070 Laptop", 89, 8, 256),
        ("RTX 4080 Laptop", 89, 12, 432),
        ("RTX 4090 Laptop", 89, 16, 576),
        ("RTX 5060 Laptop", 120, 8, 384),
        ("RTX 5070 Laptop", 120, 8, 384),
        ("RTX 5070 Ti Laptop", 120, 12, 672),
        ("RTX 5080 Laptop", 120, 16, 896),
        ("RTX 5090 Laptop", 120, 24, 896),
    )
)


def find_card(device_name: str) -> GraphicsCard | None:
    """Return the card that a driver's name is of ("NVIDIA GeForce RTX 4090 Laptop GPU"), if known."""
    words = f" {device_name.lower()} ".replace("-", " ")

    def is_named(card: GraphicsCard) -> bool:
        return f" {card.name.lower().replace('-', ' ')} " in words

    return max(filter(is_named, GRAPHICS_CARDS), key=lambda card: len(card.name), default=None)
