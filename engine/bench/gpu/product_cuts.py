"""Products in other cuts than ours: what the table of tiles is to be checked against."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.machine import Bandwidth
from engine.bench.gpu.product_runs import ProductRuns
from engine.bench.gpu.products import rotated_weights
from engine.bench.gpu.shapes import Product, Shape, products
from kernels.device_limits import LIMITS, DeviceLimits, limits_of
from kernels.product.tiles import Tile, overridden, tile_for
from kernels.weight import Quantization

_CUT_PRODUCTS: dict[Quantization, tuple[str, ...]] = {
    "float": ("qkv", "down", "gate_up"),
    "fp8": ("down",),
    "int4": ("down",),
}


@dataclass(frozen=True, slots=True)
class CutTime:
    """A product of one row in another cut. What has other splits has other bits."""

    shape: str
    product: str
    quantization: str
    splits: int
    num_stages: int
    num_warps: int
    is_ours: bool
    us: float
    share_of_bandwidth: float


def measure_cuts(lab: Lab, shape: Shape) -> Cases[CutTime]:
    """Time products of one row with our numbers of splits, stages and warps, and their neighbours."""
    names, bandwidth = _CUT_PRODUCTS[shape.quantization], lab.bandwidth
    cuts = {
        product: neighbours(product, shape.quantization, limits_of(lab.machine.device))
        for product in products(shape.config)
        if product.name in names
    }
    timed = (
        (product.name, _time_cuts(lab, bandwidth, shape, product, tiles))
        for product, tiles in cuts.items()
    )
    return lab.cases("timing other cuts", sum(map(len, cuts.values())), timed)


def _time_cuts(
    lab: Lab, bandwidth: Bandwidth, shape: Shape, product: Product, tiles: Sequence[Tile]
) -> Iterator[CutTime]:
    weights = rotated_weights(lab.machine, product, shape.quantization)
    for tile in tiles:
        us = None
        with lab.catching(f"{product.name}, {tile}"), overridden(tile):
            runs = ProductRuns(lab.machine, shape.config, weights[0], 1)
            us = runs.us(product.name, weights)
        if us is not None:
            yield CutTime(
                shape=shape.name,
                product=product.name,
                quantization=shape.quantization_name,
                splits=tile.splits,
                num_stages=tile.num_stages,
                num_warps=tile.num_warps,
                is_ours=tile == tiles[0],
                us=us,
                share_of_bandwidth=bandwidth.share(weights[0].num_bytes, us),
            )


def neighbours(
    product: Product, quantization: Quantization, limits: DeviceLimits = LIMITS[90]
) -> list[Tile]:
    """The tile that a product of one row takes, then others near it."""
    ours = tile_for(product.outputs, product.inputs, 1, quantization, limits=limits)
    most = max(1, product.inputs // ours.depth)
    splits = sorted({max(1, ours.splits // 2), min(2 * ours.splits, 16, most)})
    tiles = [ours, *(replace(ours, splits=count) for count in splits)]
    tiles += [replace(ours, num_stages=count) for count in (2, 3, 4, 6) if count <= ours.num_stages]
    tiles.append(replace(ours, num_stages=max(2, ours.num_stages - 1), num_warps=8))
    return list(dict.fromkeys(tiles))
