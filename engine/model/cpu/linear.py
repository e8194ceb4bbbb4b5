"""Linear layers, one signature: rows in, rows out, float32. How the weights are held is theirs.

The 8-bit layers give a row the same bits whatever other rows ride along, which is what makes
lookahead text equal plain text. The float layers do not promise that.
"""

import platform
import warnings
from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import Protocol

import torch
from torch.nn import functional

# An activation row is scaled to -63..63 and shifted by 64: a product of two such codes with two
# 8-bit weights still fits the 16 bits in which AVX2 adds pairs, so nothing saturates.
ACTIVATION_LEVELS = 63
_SHIFT = 64
_FINE = 2 * ACTIVATION_LEVELS  # steps of the second pass within one step of the first

_X86 = ("x86_64", "AMD64", "i386", "i686")
_one_at_a_time = Lock()


class Linear(Protocol):
    """A matrix and its bias."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Float32 [rows, in] -> float32 [rows, out]."""
        ...


class FloatLinear:
    """Weights in float32 or bfloat16, multiplied in that type."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._weight = weight
        self._bias = None if bias is None else bias.to(weight.dtype)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Float32 [rows, in] -> float32 [rows, out]."""
        return functional.linear(x.to(self._weight.dtype), self._weight, self._bias).to(x.dtype)


class Int8Linear:
    """8-bit weights, one scale per output, times 7-bit activations, one scale per row.

    The integer products come from FBGEMM, which torch brings on x86: 25 GB/s of weights on two
    AVX2 cores, where torch's bfloat16-activation products reach half of that from four rows on.
    `fine` adds a second pass over the rounding error, for inputs that 7 bits hold badly.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        scale: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        fine: bool = False,
    ) -> None:
        self._packed = _prepack(weight, scale)
        self._bias = bias
        self._fine = fine

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Float32 [rows, in] -> float32 [rows, out]."""
        largest = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True)
        step = largest.clamp_min_(1e-12).mul_(1 / ACTIVATION_LEVELS)
        codes = x / step
        out = self._twice(codes) if self._fine else self._multiply(codes)
        out *= step
        return out if self._bias is None else out.add_(self._bias)

    def _twice(self, codes: torch.Tensor) -> torch.Tensor:
        coarse = codes.round()
        both = self._multiply(torch.cat([coarse, (codes - coarse).mul_(_FINE)]))
        rows = codes.shape[0]
        return both[:rows].add_(both[rows:], alpha=1 / _FINE)

    def _multiply(self, codes: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            codes, 1.0, _SHIFT, self._packed
        )
        return product


class Int8PackLinear:
    """8-bit weights times bfloat16 activations, for processors without FBGEMM's kernels."""

    def __init__(
        self, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
    ) -> None:
        self._weight, self._bias = weight.contiguous(), bias
        self._scale = scale.bfloat16()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Float32 [rows, in] -> float32 [rows, out]."""
        product: torch.Tensor = torch.ops.aten._weight_int8pack_mm(  # noqa: SLF001 - torch has it under no other name
            x.bfloat16(), self._weight, self._scale
        )
        return product.float() if self._bias is None else product.float().add_(self._bias)


def _prepack(weight: torch.Tensor, scale: torch.Tensor) -> object:
    points = torch.zeros(weight.shape[0], dtype=torch.int64)
    with _one_at_a_time, warnings.catch_warnings():  # filters of warnings belong to all threads
        # torch announces that a release beyond our range drops tensors of this kind; without
        # them `has_fbgemm` has to say no, and Int8PackLinear takes over.
        warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")
        quantised = torch._make_per_channel_quantized_tensor(  # noqa: SLF001 - likewise
            weight, scale.double(), points, 0
        )
    return torch.ops.quantized.linear_prepack(quantised, None)


@cache
def has_fbgemm() -> bool:
    """Return whether torch brings FBGEMM's products and this processor runs them.

    Some builds for ARM name the engine and then refuse every matrix, so a small one is tried.
    """
    engines = torch.backends.quantized.supported_engines
    if platform.machine() not in _X86 or "fbgemm" not in engines:
        return False
    try:
        _prepack(torch.ones(8, 8, dtype=torch.int8), torch.ones(8))
    except RuntimeError:
        return False
    return True


def make_linear(name: str, tensors: Mapping[str, torch.Tensor], *, fine: bool = False) -> Linear:
    """Build the linear `name` from its packed tensors: `.weight` and perhaps `.scale`, `.bias`."""
    weight, bias = tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
    scale = tensors.get(f"{name}.scale")
    if scale is None:
        return FloatLinear(weight, bias)
    if has_fbgemm():
        return Int8Linear(weight, scale, bias, fine=fine)
    return Int8PackLinear(weight, scale, bias)
