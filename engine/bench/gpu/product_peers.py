"""Other libraries' products over the same weights, or over random ones of the same size.

They compute the product alone; ours also norm, rotate, gate, add or choose.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from engine.bench.gpu.machine import Work
from kernels.weight import INT4_GROUP, Quantization, Weight

# Of rows [R, K] and weights: what multiplies with each of the weights in turn. Raises whatever the
# library does where it cannot.
ProductPeer = Callable[[torch.Tensor, Sequence[Weight]], Work]
_INNER_TILES = 8


def cublas(rows: torch.Tensor, weights: Sequence[Weight]) -> Work:
    """torch.mm, into one output."""
    out = rows.new_empty(len(rows), weights[0].num_outputs)
    transposed = [weight.values.T for weight in weights]
    return lambda: [torch.mm(rows, one, out=out) for one in transposed]


def scaled_mm(rows: torch.Tensor, weights: Sequence[Weight]) -> Work:
    """torch._scaled_mm: 8-bit weights and, other than ours, 8-bit activations, scales for both."""
    narrow = rows.to(torch.float8_e4m3fn)
    scale = torch.ones(len(rows), 1, device=rows.device)
    pairs = [(w.values.T, w.scales[None, :]) for w in weights if w.scales is not None]

    def work() -> None:
        for transposed, scales in pairs:
            torch._scaled_mm(  # noqa: SLF001 - torch has no other name for it
                narrow, transposed, scale_a=scale, scale_b=scales, out_dtype=torch.bfloat16
            )

    return work


def int4_pack(rows: torch.Tensor, weights: Sequence[Weight]) -> Work:
    """torch._weight_int4pack_mm, over random codes: groups of 128 with a scale and a zero."""
    aten = torch.ops.aten
    packed = [
        aten._convert_weight_to_int4pack(weight.values, _INNER_TILES)  # noqa: SLF001 - its only name
        for weight in weights
    ]
    scales = rows.new_ones(rows.shape[1] // INT4_GROUP, weights[0].num_outputs, 2)

    def work() -> None:
        for one in packed:
            aten._weight_int4pack_mm(rows, one, INT4_GROUP, scales)  # noqa: SLF001 - likewise

    return work


def gemlite(processor: str, rows: torch.Tensor, weights: Sequence[Weight]) -> Work:
    """gemlite's product, where the package is there; `processor` is one of gemlite.helper."""
    helper: Any = importlib.import_module("gemlite.helper")
    pack = getattr(helper, processor)(device=str(rows.device), dtype=rows.dtype).from_linear
    layers = [pack(_linear(rows, weight)) for weight in weights]
    return lambda: [layer(rows) for layer in layers]


def torchao(configuration: str, rows: torch.Tensor, weights: Sequence[Weight]) -> Work:
    """torchao's product, where the package is there; `configuration` of torchao.quantization."""
    library: Any = importlib.import_module("torchao.quantization")
    layers = [_linear(rows, weight) for weight in weights]
    for layer in layers:
        library.quantize_(layer, getattr(library, configuration)())
    return lambda: [layer(rows) for layer in layers]


def _linear(rows: torch.Tensor, like: Weight) -> torch.nn.Linear:
    """A layer of random numbers."""
    return torch.nn.Linear(
        like.num_inputs, like.num_outputs, bias=False, device=rows.device, dtype=rows.dtype
    ).requires_grad_(requires_grad=False)


PEERS: dict[Quantization, dict[str, ProductPeer]] = {
    "float": {"cuBLAS": cublas},
    "fp8": {
        "torch._scaled_mm (8-bit activations)": scaled_mm,
        "gemlite fp8": partial(gemlite, "A16W8_FP8"),
        "torchao fp8": partial(torchao, "Float8WeightOnlyConfig"),
    },
    "int4": {
        "torch._weight_int4pack_mm": int4_pack,
        "gemlite int4": partial(gemlite, "A16W4_HQQ_INT"),
        "torchao int4": partial(torchao, "Int4WeightOnlyConfig"),
    },
}
