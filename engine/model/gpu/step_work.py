"""What the kernels of a step read and compute, and how long that alone takes a card: no latency."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from engine.model.gpu.cards import Card
from engine.model.gpu.held_forms import HeldForm, PlannedProduct, products_of
from engine.model.model_config import ModelConfig
from kernels.batch import KEY_TILE, ROW_TILE
from kernels.batch_attention import num_splits
from kernels.device_limits import limits_for
from kernels.product.tiles import ROW_TILES, Tile, num_blocks, tile_for
from kernels.weight import Quantization

US = 1e6  # of a second
_FEW_ROWS = 16  # of a partial sum at least
# Instructions that warps begin for 1,024 weights in the loop of a product with tiles of 16, 32, 64
# and 128 rows: counted where compiled for sm_86, whose warps multiply by themselves, and for sm_90.
INSTRUCTIONS: dict[Quantization, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "float": ((52, 59, 90, 169), (54, 40, 58, 70)),
    "fp8": ((142, 246, 301, 599), (140, 118, 145, 155)),
    "int4": ((116, 146, 227, 711), (135, 131, 164, 217)),
    "q8_0": ((173, 244, 359, 1183), (235, 275, 350, 655)),
    "q4_k": ((398, 562, 947, 1966), (316, 377, 514, 891)),
    "q6_k": ((374, 450, 614, 1409), (362, 422, 553, 949)),
    "q6_k_min": ((486, 646, 956, 2387), (476, 606, 863, 1552)),
    "int4_zeros": ((234, 294, 404, 742), (198, 206, 231, 363)),
}


class Busy(NamedTuple):
    """What of a card kernels keep busy.

    `memory` is the share of the bandwidth, `issue` that of the cycles in which a multiprocessor
    begins an instruction, `tensor` that of what the tensor cores can do.
    """

    memory: float
    issue: float
    tensor: float


@dataclass(frozen=True, slots=True)
class StepWork:
    """A step of `rows` rows, in `runs` branches, behind `context` tokens."""

    config: ModelConfig
    form: HeldForm = "bfloat16"
    rows: int = 1
    context: int = 2048
    runs: int = 1

    @property
    def kv_bytes(self) -> float:
        """Keys and values of one layer."""
        return 2 * 2 * self.config.num_kv_heads * self.config.head_dim * self.context


@dataclass(frozen=True, slots=True)
class ProductWork:
    """One product of a step: `programs` tiles, those of splits and blocks of rows apart.

    `weights` bytes are read from memory, the first time that a block of rows asks for them;
    `through_cache` are bytes too; `operations` are the tensor cores'.
    """

    tile: Tile
    programs: int
    weights: float
    through_cache: float
    instructions: float
    operations: float

    @classmethod
    def of(cls, product: PlannedProduct, rows: int, card: Card) -> Self:
        """Every program reads all rows, so the fewer outputs it has, the more the cache has to give."""
        outputs, inputs, form = product.outputs, product.inputs, product.form
        limits = limits_for(card.architecture)
        tile = tile_for(outputs, inputs, rows, form, whole=product.is_head, limits=limits)
        tiles = num_blocks(outputs, tile.outputs)
        row_blocks = num_blocks(rows, tile.rows)
        through_cache = row_blocks * product.num_bytes + tiles * rows * inputs * 2
        if tile.splits > 1:
            through_cache += 2 * outputs * tile.splits * max(_FEW_ROWS, rows) * 4
        counted = INSTRUCTIONS[form][limits.has_warp_groups][ROW_TILES.index(tile.rows)]
        return cls(
            tile=tile,
            programs=row_blocks * tiles * tile.splits,
            weights=product.num_bytes,
            through_cache=through_cache,
            instructions=row_blocks * outputs * inputs / 1024 * counted,
            operations=2 * row_blocks * tile.rows * outputs * inputs,
        )

    def memory_us(self, card: Card, busy: Busy) -> float:
        """What reading the weights takes."""
        return US * self.weights / (busy.memory * card.bandwidth)

    def other_us(self, card: Card, busy: Busy) -> float:
        """What the slowest of all else takes."""
        return US * max(
            self.through_cache / card.cache_bandwidth,
            self.instructions / (busy.issue * card.issue_rate),
            self.operations / (busy.tensor * card.tensor_rate),
        )


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """The attention of one layer: every block of 64 packed rows reads the context's keys and values.

    `splits` programs of a block and kv head have something to read, and leave `shares` bytes.
    """

    packed_rows: int
    blocks: int
    splits: int
    kv_bytes: float
    shares: float

    @classmethod
    def of(cls, work: StepWork) -> Self:
        """Of any layer of the step."""
        config = work.config
        packed = work.rows * (config.num_heads // config.num_kv_heads)
        splits = min(num_splits(config.num_kv_heads), -(-work.context // KEY_TILE))
        return cls(
            packed_rows=packed,
            blocks=-(-packed // ROW_TILE),
            splits=splits,
            kv_bytes=work.kv_bytes,
            shares=config.num_kv_heads * (splits + 1) * packed * config.head_dim * 4,
        )

    def attend_us(self, card: Card) -> float:
        """What reading the context and leaving the shares takes."""
        through_cache = self.kv_bytes * self.blocks + self.shares
        return US * max(self.kv_bytes / card.bandwidth, through_cache / card.cache_bandwidth)

    def combine_us(self, card: Card) -> float:
        """What reading the shares takes."""
        return US * self.shares / card.cache_bandwidth


def step_bytes(work: StepWork) -> float:
    """What any implementation has to read: the weights, and the keys and values of the context."""
    weights = sum(one.count * one.num_bytes for one in products_of(work.config, work.form))
    return weights + work.config.num_layers * work.kv_bytes
