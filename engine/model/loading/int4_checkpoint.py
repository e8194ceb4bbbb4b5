"""Four-bit matrices of GPTQ and AWQ in a Hugging Face folder: w = scale_group (code - zero_group).

Both pack codes and zeros in int32, eight to a number. GPTQ packs codes along the inputs and may
reorder inputs (`desc_act`); its first format stores zeros minus one. AWQ packs along the outputs
in its own order. Formats: ModelCloud/GPTQModel; casper-hansen/AutoAWQ, `awq/modules/linear/gemm.py`
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch

from kernels.weight import INT4_GROUP, Weight

PARTS = ("qweight", "qzeros", "scales", "g_idx")  # `g_idx` only if inputs are reordered
_AWQ_ORDER = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])  # place of each output's code within a number
_SHIFTS = torch.arange(0, 32, 4, dtype=torch.int32)
_MIDDLE = 8  # the zero of symmetric groups


@dataclass(frozen=True, slots=True)
class Int4Matrix:
    """A matrix of N outputs and K inputs."""

    codes: torch.Tensor  # uint8 [N, K]
    zeros: torch.Tensor  # uint8 [groups, N]
    scales: torch.Tensor  # float16 [groups, N]
    groups: torch.Tensor  # int64 [K]: the group of each input

    @classmethod
    def unpack(cls, quantization: Mapping[str, Any], parts: Mapping[str, torch.Tensor]) -> Self:
        """Read `PARTS`. Raises ValueError, LookupError or RuntimeError if they do not fit."""
        packed, zeros, scales = (parts[name] for name in PARTS[:3])
        if quantization["quant_method"] == "awq":
            codes, order = _unpacked(packed), _AWQ_ORDER
            codes = codes.unflatten(1, (-1, 8))[:, :, order].flatten(1).T.contiguous()
            zeros = _unpacked(zeros).unflatten(1, (-1, 8))[:, :, order].flatten(1)
        else:
            codes = _unpacked(packed.T.contiguous())
            is_first_format = quantization.get("checkpoint_format", "gptq") == "gptq"
            zeros = _unpacked(zeros) + int(is_first_format)
        groups = parts.get("g_idx")
        inputs, num_groups = codes.shape[1], len(scales)
        if groups is None:
            groups = torch.arange(inputs) // (inputs // num_groups or 1)
        fits = zeros.shape == scales.shape == (num_groups, len(codes)) and groups.shape == (inputs,)
        if not (
            fits and scales.is_floating_point() and 0 <= groups.min() <= groups.max() < num_groups
        ):
            raise ValueError("its codes, zeros, scales and groups do not fit each other")
        return cls(codes, zeros, scales.half(), groups.long())

    def dense(self) -> torch.Tensor:
        """Return the matrix in float32 [N, K]."""
        zeros, scales = self.zeros.T[:, self.groups], self.scales.T[:, self.groups]
        return (self.codes.float() - zeros.float()) * scales.float()

    def own_form(self) -> Weight | None:
        """Return the same numbers in a GPU's form; None unless groups are 128 adjacent inputs."""
        inputs = self.codes.shape[1]
        if inputs % INT4_GROUP or not torch.equal(self.groups, torch.arange(inputs) // INT4_GROUP):
            return None
        halves = self.codes.view(len(self.codes), -1, 2, INT4_GROUP // 2)
        values = (halves[:, :, 0] | (halves[:, :, 1] << 4)).flatten(1)
        if (self.zeros == _MIDDLE).all():
            return Weight("int4", values, self.scales.float().contiguous())
        words = (self.scales.view(torch.int16).int() & 0xFFFF) | (self.zeros.int() << 16)
        return Weight("int4_zeros", values, words.contiguous())


def unpacked_shape(quantization: Mapping[str, Any], packed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape [N, K] of a matrix whose `qweight` has the shape `packed`."""
    if len(packed) != 2:
        return packed
    rows, columns = packed
    return (8 * columns, rows) if quantization["quant_method"] == "awq" else (columns, 8 * rows)


def _unpacked(numbers: torch.Tensor) -> torch.Tensor:
    """Unpack int32 [rows, n] to uint8 [rows, 8 n], lowest four bits first."""
    return ((numbers[:, :, None] >> _SHIFTS) & 15).to(torch.uint8).flatten(1)
