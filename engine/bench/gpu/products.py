"""The products of a layer and the head, ours against others', at real shapes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.product_peers import PEERS, ProductPeer
from engine.bench.gpu.product_runs import ProductRuns
from engine.bench.gpu.shapes import Product, Shape, products
from engine.model.gpu.weights import head_quantization
from kernels.weight import INT4_GROUP, Quantization, Weight, pack

_DEVIATION = 0.02


@dataclass(frozen=True, slots=True)
class ProductTime:
    """What a launch takes. The share is of the read bandwidth; `peers_us` by name."""

    shape: str
    product: str
    quantization: str
    rows: int
    bytes: int
    ours_us: float
    share_of_bandwidth: float
    peers_us: Mapping[str, float]


def is_held(product: Product, quantization: Quantization) -> bool:
    """Whether models of `quantization` hold this product's weights so."""
    if product.name == "head" and head_quantization(quantization) != quantization:
        return False
    return quantization != "int4" or product.inputs % INT4_GROUP == 0


def measure_products(
    lab: Lab,
    shapes: Sequence[Shape],
    rows: Sequence[int],
    peers: Mapping[Quantization, Mapping[str, ProductPeer]] = PEERS,
) -> Cases[ProductTime]:
    """Time every product of every shape in each quantization of `peers`, and these beside it."""
    bandwidth = lab.bandwidth
    timed = {
        f"{shape.name} {product.name} {shape.quantization_name}": _time_rows(
            lab, bandwidth, shape, product, rows, peers[shape.quantization]
        )
        for one in shapes
        for product in products(one.config)
        for shape in map(one.held, peers)
        if is_held(product, shape.quantization)
    }
    return lab.cases("timing the products", len(timed) * len(rows), timed.items())


def _time_rows(
    lab: Lab,
    bandwidth: Bandwidth,
    shape: Shape,
    product: Product,
    rows: Sequence[int],
    peers: Mapping[str, ProductPeer],
) -> Iterator[ProductTime]:
    machine = lab.machine
    weights = rotated_weights(machine, product, shape.quantization)
    for count in rows:
        ours_us = ProductRuns(machine, shape.config, weights[0], count).us(product.name, weights)
        peers_us: dict[str, float] = {}
        for name, prepare in peers.items():
            with lab.catching(f"{name} cannot be timed"):
                work = prepare(machine.random(count, product.inputs), weights)
                peers_us[name] = machine.us_per_launch(work, len(weights))
        num_bytes = weights[0].num_bytes
        yield ProductTime(
            shape=shape.name,
            product=product.name,
            quantization=shape.quantization_name,
            rows=count,
            bytes=num_bytes,
            ours_us=ours_us,
            share_of_bandwidth=bandwidth.share(num_bytes, ours_us),
            peers_us=peers_us,
        )


def rotated_weights(machine: Machine, product: Product, quantization: Quantization) -> list[Weight]:
    """As many random matrices as it takes for none of them to be cached when its turn comes."""
    first = random_weight(machine, product, quantization)
    others = range(machine.copies(first.num_bytes) - 1)
    return [first, *(random_weight(machine, product, quantization) for _ in others)]


def random_weight(machine: Machine, product: Product, quantization: Quantization) -> Weight:
    """Draw a matrix and hold it in `quantization`."""
    return pack(machine.random(product.outputs, product.inputs).mul_(_DEVIATION), quantization)
