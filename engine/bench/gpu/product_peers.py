"""Other libraries' products over the same weights, or over random ones of the same size.

They compute the product alone; ours also norm, rotate, gate, add or choose.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from engine.bench.gpu.machine import Work
from kernels.weight import INT4_GROUP, Quantization, Weight

_INNER_TILES = 8


@dataclass(frozen=True, slots=True)
class Inputs:
    """What meets the weights: `rows` [R, K], and how many outputs that makes."""

    rows: torch.Tensor
    outputs: int

    def out(self) -> torch.Tensor:
        """Memory for the product."""
        return self.rows.new_empty(self.rows.shape[0], self.outputs)


class ProductPeer(Protocol):
    """A library's product. `prepare` raises whatever the library does where it cannot."""

    @property
    def name(self) -> str:
        """What to call it in reports."""
        ...

    def prepare(self, inputs: Inputs, weights: Sequence[Weight]) -> Work:
        """Return what multiplies with each of the weights in turn."""
        ...


class Cublas:
    """torch.mm."""

    name = "cuBLAS"

    def prepare(self, inputs: Inputs, weights: Sequence[Weight]) -> Work:
        """Multiply into one output."""
        out = inputs.out()
        turned = [weight.values.T for weight in weights]
        return lambda: [torch.mm(inputs.rows, one, out=out) for one in turned]


class ScaledMM:
    """torch._scaled_mm: 8-bit weights and, other than ours, 8-bit activations."""

    name = "torch._scaled_mm (8-bit activations)"

    def prepare(self, inputs: Inputs, weights: Sequence[Weight]) -> Work:
        """Multiply with a scale per row and output."""
        rows = inputs.rows.to(torch.float8_e4m3fn)
        scale = torch.ones(rows.shape[0], 1, device=rows.device)
        pairs = [(w.values.T, w.scales[None, :]) for w in weights if w.scales is not None]

        def work() -> None:
            for turned, scales in pairs:
                torch._scaled_mm(  # noqa: SLF001 - torch has no other name for it
                    rows, turned, scale_a=scale, scale_b=scales, out_dtype=torch.bfloat16
                )

        return work


class Int4Pack:
    """torch._weight_int4pack_mm, over random codes."""

    name = "torch._weight_int4pack_mm"

    def prepare(self, inputs: Inputs, weights: Sequence[Weight]) -> Work:
        """Pack as the kernel wants it: groups of 128 inputs with a scale and a zero."""
        aten, (_, width) = torch.ops.aten, inputs.rows.shape
        packed = [
            aten._convert_weight_to_int4pack(weight.values, _INNER_TILES)  # noqa: SLF001 - its only name
            for weight in weights
        ]
        scales = inputs.rows.new_ones(width // INT4_GROUP, inputs.outputs, 2)

        def work() -> None:
            for one in packed:
                aten._weight_int4pack_mm(inputs.rows, one, INT4_GROUP, scales)  # noqa: SLF001 - likewise

        return work


@dataclass(frozen=True, slots=True)
class GemLite:
    """gemlite's product, where the package is there."""

    name: str
    processor: str  # of gemlite.helper

    def prepare(self, inputs: Inputs, weights: Sequence[Weight]) -> Work:
        """Pack random matrices of the same size."""
        helper: Any = importlib.import_module("gemlite.helper")
        rows = inputs.rows
        processor = getattr(helper, self.processor)(device=str(rows.device), dtype=rows.dtype)
        layers = [processor.from_linear(_linear(inputs)) for _ in weights]
        return lambda: [layer(rows) for layer in layers]


@dataclass(frozen=True, slots=True)
class TorchAO:
    """torchao's product, where the package is there."""

    name: str
    configuration: str  # of torchao.quantization

    def prepare(self, inputs: Inputs, weights: Sequence[Weight]) -> Work:
        """Quantise random matrices of the same size."""
        library: Any = importlib.import_module("torchao.quantization")
        layers = [_linear(inputs) for _ in weights]
        for layer in layers:
            library.quantize_(layer, getattr(library, self.configuration)())
        return lambda: [layer(inputs.rows) for layer in layers]


def _linear(inputs: Inputs) -> torch.nn.Linear:
    rows = inputs.rows
    return torch.nn.Linear(
        rows.shape[1], inputs.outputs, bias=False, device=rows.device, dtype=rows.dtype
    ).requires_grad_(requires_grad=False)


PEERS: dict[Quantization, tuple[ProductPeer, ...]] = {
    "float": (Cublas(),),
    "fp8": (
        ScaledMM(),
        GemLite("gemlite fp8", "A16W8_FP8"),
        TorchAO("torchao fp8", "Float8WeightOnlyConfig"),
    ),
    "int4": (
        Int4Pack(),
        GemLite("gemlite int4", "A16W4_HQQ_INT"),
        TorchAO("torchao int4", "Int4WeightOnlyConfig"),
    ),
}
