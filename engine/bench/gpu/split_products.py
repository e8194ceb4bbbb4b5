"""A product whose inputs are split, launched over and over: its splits must meet without a race.

The last program to arrive at a counter adds up what all have left, so an order of memory that only
nearly holds would show here first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.product_runs import ProductRuns
from engine.bench.gpu.products import Product, products, random_weight
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.stress import stressed
from engine.model.model_config import ModelConfig
from kernels.product.tiles import tile_for
from kernels.weight import Quantization

_QUANTIZATION: Quantization = "float"  # all of them split in the same way
_ADDED = ("o", "down")  # the products that `skinny_matmul` computes


@dataclass(frozen=True, slots=True)
class SplitProduct:
    """Launches of `splits` programs for each 64 outputs, and how many of them wrote other bits."""

    shape: str
    product: str
    rows: int
    splits: int
    launches: int
    launches_different: int


def stress_split_products(
    machine: Machine, shape: Shape, rows: Sequence[int], launches: int
) -> tuple[SplitProduct, ...]:
    """Launch the shape's product of most splits at several numbers of rows, each `launches` times."""
    product = most_split(shape.config)
    return tuple(_stress(machine, shape, product, count, launches) for count in rows)


def most_split(config: ModelConfig) -> Product:
    """The added product whose inputs are in most ranges."""
    added = (product for product in products(config) if product.name in _ADDED)
    return max(added, key=_splits)


def _splits(product: Product) -> int:
    return tile_for(product.outputs, product.inputs, 1, _QUANTIZATION).splits


def _stress(
    machine: Machine, shape: Shape, product: Product, rows: int, launches: int
) -> SplitProduct:
    weight = random_weight(machine, product, _QUANTIZATION)
    runs = ProductRuns(machine, shape.config, weight, rows)
    run, residual = runs.of(product.name), runs.stream.residual
    start = torch.randn_like(residual)

    def launch() -> None:
        residual.copy_(start)
        runs.scratch.partials.fill_(torch.nan)
        run(weight)

    found = stressed(machine, launch, residual, launches)
    return SplitProduct(
        shape=shape.name,
        product=product.name,
        rows=rows,
        splits=_splits(product),
        launches=found.launches,
        launches_different=found.different,
    )
