"""Four-bit matrices of GPTQ and AWQ in a Hugging Face folder: w = scale_group (code - zero_group).

Both pack codes and zeros in int32, eight to a number. GPTQ packs codes along the inputs and may
reorder inputs (`desc_act`); its first format stores zeros minus one. AWQ packs along the outputs
in its own order. Formats: ModelCloud/GPTQModel; casper-hansen/AutoAWQ, `awq/modules/linear/gemm.py`
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from kernels.weight import Weight

PARTS = ("qweight", "qzeros", "scales", "g_idx")  # `g_idx` only if inputs are reordered
_AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # place of each output's code within a number
_SHIFTS = np.arange(0, 32, 4, dtype=np.int32)
_MIDDLE = 8  # the zero of symmetric groups


@dataclass(frozen=True, slots=True)
class Int4Matrix:
    """A matrix of N outputs and K inputs."""

    codes: np.ndarray  # uint8 [N, K]
    zeros: np.ndarray  # uint8 [groups, N]
    scales: np.ndarray  # float16 [groups, N]
    groups: np.ndarray  # int64 [K]: the group of each input

    @classmethod
    def unpack(cls, quantization: Mapping[str, Any], parts: Mapping[str, np.ndarray]) -> Self:
        """Read `PARTS`. Raises ValueError or LookupError if they do not fit."""
        packed, zeros, scales = (parts[name] for name in PARTS[:3])
        if not packed.dtype == zeros.dtype == np.int32:
            raise ValueError("its codes and zeros are not packed in int32")
        if quantization["quant_method"] == "awq":
            codes, order = _unpacked(packed), _AWQ_ORDER
            codes = _by_eights(codes)[:, :, order].reshape(codes.shape).T
            zeros = _unpacked(zeros)
            zeros = _by_eights(zeros)[:, :, order].reshape(zeros.shape)
        else:
            codes = _unpacked(packed.T)
            is_first_format = quantization.get("checkpoint_format", "gptq") == "gptq"
            zeros = _unpacked(zeros) + int(is_first_format)
        groups = parts.get("g_idx")
        inputs, num_groups = codes.shape[1], len(scales)
        if groups is None:
            groups = np.arange(inputs) // (inputs // num_groups or 1)
        fits = zeros.shape == scales.shape == (num_groups, len(codes)) and groups.shape == (inputs,)
        if not (
            fits
            and np.issubdtype(scales.dtype, np.floating)
            and 0 <= groups.min() <= groups.max() < num_groups
        ):
            raise ValueError("its codes, zeros, scales and groups do not fit each other")
        return cls(codes, zeros, scales.astype(np.float16), groups.astype(np.int64))

    def dense(self) -> np.ndarray:
        """Return the matrix in float32 [N, K]."""
        zeros, scales = self.zeros.T[:, self.groups], self.scales.T[:, self.groups]
        whole: np.ndarray = (self.codes - zeros.astype(np.float32)) * scales.astype(np.float32)
        return whole

    def own_form(self) -> "Weight | None":
        """Return the same numbers in a GPU's form; None unless groups are 128 adjacent inputs."""
        import torch  # noqa: PLC0415 - it lays the model out for a GPU

        from kernels.weight import INT4_GROUP, Weight  # noqa: PLC0415 - it loads torch

        inputs = self.codes.shape[1]
        if inputs % INT4_GROUP or (self.groups != np.arange(inputs) // INT4_GROUP).any():
            return None
        halves = self.codes.reshape(len(self.codes), -1, 2, INT4_GROUP // 2)
        values = (halves[:, :, 0] | (halves[:, :, 1] << 4)).reshape(len(self.codes), -1)
        if (self.zeros == _MIDDLE).all():
            scales = self.scales.astype(np.float32)
            return Weight("int4", torch.from_numpy(values), torch.from_numpy(scales))
        words = self.scales.view(np.uint16) | (self.zeros.astype(np.uint32) << 16)
        return Weight(
            "int4_zeros", torch.from_numpy(values), torch.from_numpy(words.view(np.int32))
        )


def unpacked_shape(quantization: Mapping[str, Any], packed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape [N, K] of a matrix whose `qweight` has the shape `packed`."""
    if len(packed) != 2:
        return packed
    rows, columns = packed
    return (8 * columns, rows) if quantization["quant_method"] == "awq" else (columns, 8 * rows)


def _unpacked(numbers: np.ndarray) -> np.ndarray:
    """Unpack int32 [rows, n] to uint8 [rows, 8 n], lowest four bits first."""
    return ((numbers[:, :, None] >> _SHIFTS) & 15).astype(np.uint8).reshape(len(numbers), -1)


def _by_eights(codes: np.ndarray) -> np.ndarray:
    return codes.reshape(len(codes), -1, 8)
