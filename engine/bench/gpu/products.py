"""The products of a layer and the head, one by one, at real shapes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.product_runs import ProductRuns
from engine.bench.gpu.shapes import Product, Shape, products
from engine.model.gpu.weights import head_quantization
from kernels.weight import Quantization, Weight, pack

_DEVIATION = 0.02


@dataclass(frozen=True, slots=True)
class ProductTime:
    """What a launch takes. The share is of the read bandwidth."""

    shape: str
    product: str
    quantization: str
    rows: int
    bytes: int
    us: float
    share_of_bandwidth: float


def measure_products(lab: Lab, shape: Shape, rows: Sequence[int]) -> Cases[ProductTime]:
    """Time every product of a shape as its models hold it."""
    every, bandwidth = products(shape.config), lab.bandwidth
    timed = (
        (f"{shape.full_name} {product.name}", _time_rows(lab, bandwidth, shape, product, rows))
        for product in every
    )
    return lab.cases("timing the products", len(every) * len(rows), timed)


def _time_rows(
    lab: Lab, bandwidth: Bandwidth, shape: Shape, product: Product, rows: Sequence[int]
) -> Iterator[ProductTime]:
    if product.name == "head":
        shape = replace(shape, quantization=head_quantization(shape.quantization))
    weights = rotated_weights(lab.machine, product, shape.quantization)
    num_bytes = weights[0].num_bytes
    for count in rows:
        us = ProductRuns(lab.machine, shape.config, weights[0], count).us(product.name, weights)
        yield ProductTime(
            shape=shape.name,
            product=product.name,
            quantization=shape.quantization_name,
            rows=count,
            bytes=num_bytes,
            us=us,
            share_of_bandwidth=bandwidth.share(num_bytes, us),
        )


def rotated_weights(machine: Machine, product: Product, quantization: Quantization) -> list[Weight]:
    """As many random matrices as it takes for none of them to be cached when its turn comes."""

    def drawn() -> Weight:
        numbers = machine.random(product.outputs, product.inputs).mul_(_DEVIATION)
        return pack(numbers, quantization)

    first = drawn()
    return [first, *(drawn() for _ in range(machine.copies(first.num_bytes) - 1))]
