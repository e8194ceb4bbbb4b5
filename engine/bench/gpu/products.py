"""The products of a layer and the head, ours against others', at real shapes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.bench.gpu.bandwidth import Bandwidth
from engine.bench.gpu.failures import Notes
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.product_peers import PEERS, Inputs
from engine.bench.gpu.shapes import Shape, drafted_tree, form_name
from engine.model.gpu.buffers import Flow, StepShape
from engine.model.gpu.buffers import Inputs as StepInputs
from engine.model.gpu.gpu_weights import head_form
from engine.model.gpu.planting import Seedling
from engine.model.model_config import ModelConfig
from engine.progress import Progress
from kernels.operations import Operations, operations_for
from kernels.scratch import Scratch
from kernels.skinny_matmul.tiles import scratch_size
from kernels.weight import INT4_GROUP, Form, Weight, pack

FORMS: tuple[Form, ...] = ("float", "fp8", "int4")
_ROTATED_BYTES = 300_000_000  # of the weights that take turns: five times the L2 cache
_MOST_COPIES = 64
_POSITIONS = 512  # of the cache that qkv writes to
_DEVIATION = 0.02

Run = Callable[[Weight], None]


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
    form: str
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


def is_held(product: Product, form: Form) -> bool:
    """Whether models in `form` hold this product's weights so."""
    if product.name == "head" and head_form(form) != form:
        return False
    return form != "int4" or product.inputs % INT4_GROUP == 0


def measure_products(
    machine: Machine,
    bandwidth: Bandwidth,
    shapes: Sequence[Shape],
    rows: Sequence[int],
    progress: Progress,
) -> ProductTimes:
    """Time every product of every shape in every form."""
    cases = [
        (shape, product, form)
        for shape in shapes
        for product in products(shape.config)
        for form in FORMS
        if is_held(product, form)
    ]
    progress.begin("timing the products", len(cases))
    times: list[ProductTime] = []
    notes = Notes()
    try:
        for shape, product, form in cases:
            with notes.catching(f"{shape.name} {product.name} {form_name(form)}"):
                weights = rotated_weights(machine, product, form)
                times.extend(
                    _time(machine, bandwidth, shape, product, weights, count, notes)
                    for count in rows
                )
            machine.release()
            progress.advance(1)
    finally:
        progress.end()
    return ProductTimes(tuple(times), tuple(notes))


def rotated_weights(machine: Machine, product: Product, form: Form) -> list[Weight]:
    """As many random matrices as it takes for none of them to be cached when its turn comes."""

    def drawn() -> Weight:
        matrix = machine.random(product.outputs, product.inputs).mul_(_DEVIATION)
        return pack(matrix, form)

    first = drawn()
    copies = min(_MOST_COPIES, math.ceil(_ROTATED_BYTES / first.num_bytes)) if machine.is_gpu else 2
    return [first, *(drawn() for _ in range(max(copies, 2) - 1))]


def _time(
    machine: Machine,
    bandwidth: Bandwidth,
    shape: Shape,
    product: Product,
    weights: Sequence[Weight],
    rows: int,
    notes: Notes,
) -> ProductTime:
    run = _Runs(machine, shape.config, weights[0], rows).of(product.name)
    ours_us = _us(machine, lambda: [run(weight) for weight in weights], len(weights))
    peers_us: dict[str, float] = {}
    form = weights[0].form
    for peer in PEERS[form]:
        with notes.catching(f"{peer.name} cannot be timed"):
            inputs = Inputs(machine.random(rows, product.inputs), product.outputs)
            work = peer.prepare(inputs, weights)
            peers_us[peer.name] = _us(machine, work, len(weights))
    num_bytes = weights[0].num_bytes
    return ProductTime(
        shape=shape.name,
        product=product.name,
        form=form_name(form),
        rows=rows,
        bytes=num_bytes,
        ours_us=ours_us,
        share_of_bandwidth=1000 * bandwidth.floor_ms(num_bytes) / ours_us,
        peers_us=peers_us,
    )


def _us(machine: Machine, work: Callable[[], object], launches: int) -> float:
    return 1000 * machine.captured_ms(work) / launches


class _Runs:
    """Our kernels over buffers of their own, for one shape and number of rows."""

    def __init__(self, machine: Machine, config: ModelConfig, weight: Weight, rows: int) -> None:
        self._config = config
        self._operations: Operations = operations_for(machine.device)
        self._flow = Flow.allocate(config, rows, machine.dtype, machine.device)
        for held in (self._flow.normed, self._flow.attended, self._flow.joined):
            held.normal_()
        self._flow.squares.fill_(64.0)  # of numbers of unit variance
        self._inputs = StepInputs(
            StepShape(rows, 1), config.num_heads // config.num_kv_heads, machine.device
        )
        self._inputs.layout.plant(self._inputs.array, [Seedling(drafted_tree(rows), 0, 64)])
        self._inputs.upload()
        size = scratch_size(weight.num_outputs, weight.num_inputs, rows, weight.form)
        self._scratch = Scratch.allocate(*size, machine.device)
        cache = (config.num_kv_heads, _POSITIONS, config.head_dim)
        self._keys, self._values = machine.random(*cache), machine.random(*cache)
        self._turns = machine.random(_POSITIONS, config.head_dim, dtype=torch.float32)
        self._ones = torch.ones(weight.num_outputs, device=machine.device)

    def of(self, name: str) -> Run:
        """Return what runs the product of this name."""
        runs: dict[str, Run] = {
            "qkv": self._qkv,
            "o": lambda weight: self._add(self._flow.attended.flatten(1), weight),
            "gate_up": self._gate_up,
            "down": lambda weight: self._add(self._flow.joined, weight),
            "head": self._head,
        }
        return runs[name]

    def _qkv(self, weight: Weight) -> None:
        flow = self._flow
        self._operations.project_qkv(
            flow.normed,
            flow.squares,
            weight,
            self._ones,
            self._turns,
            self._inputs.forest,
            flow.queries,
            self._keys,
            self._values,
            self._scratch,
            self._config.rms_norm_eps,
        )

    def _add(self, inputs: torch.Tensor, weight: Weight) -> None:
        flow = self._flow
        self._operations.skinny_matmul(
            inputs, weight, flow.residual, self._ones, flow.normed, flow.squares, self._scratch
        )

    def _gate_up(self, weight: Weight) -> None:
        flow, eps = self._flow, self._config.rms_norm_eps
        self._operations.gate_up(flow.normed, flow.squares, weight, flow.joined, self._scratch, eps)

    def _head(self, weight: Weight) -> None:
        flow, eps = self._flow, self._config.rms_norm_eps
        self._operations.lm_head(flow.normed, flow.squares, weight, None, flow.best, eps, None)
