"""The products of a layer and the head, ours against others', at real shapes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.bench.gpu.bandwidth import Bandwidth
from engine.bench.gpu.failures import Notes
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.product_peers import PEERS, Inputs
from engine.bench.gpu.product_runs import ProductRuns
from engine.bench.gpu.shapes import Shape, quantization_name
from engine.model.gpu.weights import head_quantization
from engine.model.model_config import ModelConfig
from engine.progress import Progress
from kernels.weight import INT4_GROUP, Quantization, Weight, pack

QUANTIZATIONS: tuple[Quantization, ...] = ("float", "fp8", "int4")
_ROTATED_BYTES = 300_000_000  # of the weights that take turns: five times the L2 cache
_MOST_COPIES = 64
_DEVIATION = 0.02


@dataclass(frozen=True, slots=True)
class Product:
    """One product by its name, its outputs and its inputs."""

    name: str
    outputs: int
    inputs: int


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


@dataclass(frozen=True, slots=True)
class ProductTimes:
    """All products that were timed, and which peers could not be."""

    times: tuple[ProductTime, ...]
    notes: tuple[str, ...]


def products(config: ModelConfig) -> tuple[Product, ...]:
    """The five products of a model."""
    hidden, inter = config.hidden_size, config.intermediate_size
    heads = config.num_heads * config.head_dim
    kv = config.num_kv_heads * config.head_dim
    return (
        Product("qkv", heads + 2 * kv, hidden),
        Product("o", hidden, heads),
        Product("gate_up", 2 * inter, hidden),
        Product("down", hidden, inter),
        Product("head", config.vocab_size, hidden),
    )


def is_held(product: Product, quantization: Quantization) -> bool:
    """Whether models of `quantization` hold this product's weights so."""
    if product.name == "head" and head_quantization(quantization) != quantization:
        return False
    return quantization != "int4" or product.inputs % INT4_GROUP == 0


def measure_products(
    machine: Machine,
    bandwidth: Bandwidth,
    shapes: Sequence[Shape],
    rows: Sequence[int],
    progress: Progress,
) -> ProductTimes:
    """Time every product of every shape in every quantization."""
    cases = [
        (shape, product, quantization)
        for shape in shapes
        for product in products(shape.config)
        for quantization in QUANTIZATIONS
        if is_held(product, quantization)
    ]
    progress.begin("timing the products", len(cases))
    times: list[ProductTime] = []
    notes = Notes()
    try:
        for shape, product, quantization in cases:
            with notes.catching(f"{shape.name} {product.name} {quantization_name(quantization)}"):
                weights = rotated_weights(machine, product, quantization)
                times.extend(
                    _time(machine, bandwidth, shape, product, weights, count, notes)
                    for count in rows
                )
            machine.release()
            progress.advance(1)
    finally:
        progress.end()
    return ProductTimes(tuple(times), tuple(notes))


def rotated_weights(machine: Machine, product: Product, quantization: Quantization) -> list[Weight]:
    """As many random matrices as it takes for none of them to be cached when its turn comes."""
    first = random_weight(machine, product, quantization)
    copies = min(_MOST_COPIES, math.ceil(_ROTATED_BYTES / first.num_bytes)) if machine.is_gpu else 2
    return [
        first,
        *(random_weight(machine, product, quantization) for _ in range(max(copies, 2) - 1)),
    ]


def random_weight(machine: Machine, product: Product, quantization: Quantization) -> Weight:
    """Draw a matrix and hold it in `quantization`."""
    return pack(machine.random(product.outputs, product.inputs).mul_(_DEVIATION), quantization)


def _time(
    machine: Machine,
    bandwidth: Bandwidth,
    shape: Shape,
    product: Product,
    weights: Sequence[Weight],
    rows: int,
    notes: Notes,
) -> ProductTime:
    run = ProductRuns(machine, shape.config, weights[0], rows).of(product.name)
    ours_us = _us(machine, lambda: [run(weight) for weight in weights], len(weights))
    peers_us: dict[str, float] = {}
    quantization = weights[0].quantization
    for peer in PEERS[quantization]:
        with notes.catching(f"{peer.name} cannot be timed"):
            inputs = Inputs(machine.random(rows, product.inputs), product.outputs)
            work = peer.prepare(inputs, weights)
            peers_us[peer.name] = _us(machine, work, len(weights))
    num_bytes = weights[0].num_bytes
    return ProductTime(
        shape=shape.name,
        product=product.name,
        quantization=quantization_name(quantization),
        rows=rows,
        bytes=num_bytes,
        ours_us=ours_us,
        share_of_bandwidth=1000 * bandwidth.floor_ms(num_bytes) / ours_us,
        peers_us=peers_us,
    )


def _us(machine: Machine, work: Callable[[], object], launches: int) -> float:
    return 1000 * machine.captured_ms(work) / launches
