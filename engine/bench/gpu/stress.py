"""Launches over the same numbers, again and again: a race shows as other bits.

Of a product whose inputs are split, the last program to arrive at a counter adds up what all have
left, so an order of memory that only nearly holds would show there first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.bench.gpu.machine import Machine, Work
from engine.bench.gpu.product_runs import ProductRuns
from engine.bench.gpu.products import random_weight
from engine.bench.gpu.shapes import Product, Shape, products
from engine.model.model_config import ModelConfig
from kernels.product.tiles import tile_for

_BATCH = 50  # launches of one graph
_ADDED = ("o", "down")  # the products that `skinny_matmul` computes


@dataclass(frozen=True, slots=True)
class Stress:
    """Launches over the same numbers, and how many of them wrote other bits."""

    launches: int
    different: int


def stressed(machine: Machine, launch: Work, out: torch.Tensor, launches: int) -> Stress:
    """Launch without a pause, and count on the device what differs from the first `out`.

    `launch` also resets what it adds to, and spoils what the one before left in its scratch: a sum
    that was read too early would else be the right one, of the launch before.
    """
    launch()
    expected = _bits(out).clone()
    different = torch.zeros((), dtype=torch.int64, device=machine.device)

    def batch() -> None:
        for _ in range(_BATCH):
            launch()
            different.add_((_bits(out) != expected).any())

    replay = machine.captured(batch)
    different.zero_()
    rounds = max(1, launches // _BATCH)
    for _ in range(rounds):
        replay()
    return Stress(rounds * _BATCH, int(different))


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    """The same memory as integers: NaN equals itself, and -0 is not 0."""
    return numbers.view(torch.int32 if numbers.element_size() == 4 else torch.int16)


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
    return tile_for(product.outputs, product.inputs, 1, "float").splits  # as in any quantization


def _stress(
    machine: Machine, shape: Shape, product: Product, rows: int, launches: int
) -> SplitProduct:
    weight = random_weight(machine, product, shape.quantization)
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
