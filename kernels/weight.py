"""Matrices as the products read them: whole, in 8 or 4 bits, or in the blocks of a model file.

A product's loop is compiled for one form. Files of four bits keep the values of some layers in six.
`stacked` holds both in the wider form without loss: 1 % more bytes of a 7b model, and no more launches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import torch

from kernels.blocks import bytes_of, four_bit_codes, pack_six_bits, six_bits, unpacked, words_of

Quantization = Literal["float", "fp8", "int4", "q8_0", "q4_k", "q6_k", "q6_k_min", "int4_zeros"]
# Forms that model files hold.
STORED_FORMS: tuple[Quantization, ...] = ("q8_0", "q4_k", "q6_k", "q6_k_min", "int4", "int4_zeros")
BYTES_OF_WEIGHT: dict[Quantization, float] = {  # with scales, but for one per output
    "float": 2.0,
    "fp8": 1.0,
    "int4": 0.5 + 4 / 128,
    "q8_0": 1.0 + 4 / 64,
    "q4_k": 0.5 + 16 / 256,
    "q6_k": 0.75 + 20 / 256,
    "q6_k_min": 0.75 + 28 / 256,
    "int4_zeros": 0.5 + 4 / 128,
}
# Elements of `values` for one input; else 1.
VALUES_OF_INPUT: dict[Quantization, float] = {
    **dict.fromkeys(("int4", "q4_k", "int4_zeros"), 0.5),
    **dict.fromkeys(("q6_k", "q6_k_min"), 0.75),
}
INT4_GROUP = 128  # inputs that share a scale, as in GPTQ and AWQ files
_FP8 = torch.float8_e4m3fn
_FP8_LARGEST = 448.0  # of e4m3: 1.75 * 2**8
_INT4_ZERO = 8  # the code of 0
_ROWS = 16384  # rows of a matrix packed at a time, which bounds memory
_INT4_CLIPS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)  # of a group's largest value
_WIDENED = {"q4_k", "q6_k", "q6_k_min"}
_SIX_BIT_ZERO = 32  # the code of 0


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix of N outputs and K inputs.

    float: `values` [N, K], bfloat16 on a GPU; `scales` None.
    fp8: `values` float8_e4m3fn [N, K]; `scales` float32 [N], one per output.
    int4: `values` uint8 [N, K / 2]; `scales` float32 [K / 128, N], one per group of 128 inputs.
    Byte j of a group's 64 holds the codes of inputs j (low half) and j + 64; a code means code - 8.
    """

    quantization: Quantization
    values: torch.Tensor
    scales: torch.Tensor | None

    @property
    def num_outputs(self) -> int:
        """N."""
        return self.values.shape[0]

    @property
    def num_inputs(self) -> int:
        """K."""
        return int(self.values.shape[1] / VALUES_OF_INPUT.get(self.quantization, 1))

    @property
    def num_bytes(self) -> int:
        """Bytes that a product reads."""
        return self.values.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def dense(self) -> torch.Tensor:
        """The matrix in float32 [N, K]."""
        if self.scales is None:
            return self.values.float()
        if self.quantization == "fp8":
            return self.values.float() * self.scales[:, None]
        if self.quantization == "int4":
            return _unpack_int4(self.values, self.scales)
        return unpacked(self.quantization, self.values, self.scales)

    def rows(self, outputs: torch.Tensor) -> torch.Tensor:
        """The weights of some outputs in float32 [outputs, K], in any form but fp8."""
        scales = None if self.scales is None else self.scales[..., outputs]
        return replace(self, values=self.values[outputs], scales=scales).dense()

    def reordered(self, order: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        """The outputs as `order` orders the rows of a matrix [N, any]: `float` and files' forms."""
        values = order(self.values).contiguous()
        if self.scales is None:
            return replace(self, values=values)
        rows = order(self.scales.flatten(0, -2).T)
        return replace(self, values=values, scales=rows.T.reshape(self.scales.shape).contiguous())


def code_bytes(quantization: Quantization) -> float:
    """Bytes that a product loads for one weight, scales apart."""
    return 2.0 if quantization == "float" else VALUES_OF_INPUT.get(quantization, 1.0)


def pack(matrix: torch.Tensor, quantization: Quantization) -> Weight:
    """Hold a matrix [N, K] in `quantization`. int4 wants K to be a multiple of 128.

    Raises ValueError for a matrix that the quantization cannot hold.
    """
    if quantization == "float":
        return Weight(quantization, matrix.contiguous(), None)
    pack_rows = _pack_fp8 if quantization == "fp8" else _pack_int4
    pieces = [pack_rows(rows.float()) for rows in matrix.split(_ROWS)]
    values, scales = zip(*pieces, strict=True)
    codes = torch.cat(values).view(_FP8 if quantization == "fp8" else torch.uint8)
    return Weight(quantization, codes, torch.cat(scales, dim=-1))


def _pack_fp8(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scales = matrix.abs().amax(dim=1).clamp_min(1e-12) / _FP8_LARGEST
    codes = (matrix / scales[:, None]).to(_FP8)
    return codes.view(torch.uint8), scales  # pieces of bytes can be joined everywhere


def _pack_int4(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each group, take the clip with the least squared error."""
    outputs, inputs = matrix.shape
    if inputs % INT4_GROUP:
        raise ValueError(f"int4 wants a multiple of {INT4_GROUP} inputs, got {inputs}")
    groups = matrix.view(outputs, -1, INT4_GROUP)
    largest = groups.abs().amax(dim=2, keepdim=True).clamp_min(1e-12)
    best = torch.full_like(largest, torch.inf)
    codes, scales = torch.zeros_like(groups), largest / (_INT4_ZERO - 1)
    for clip in _INT4_CLIPS:
        tried = largest * (clip / (_INT4_ZERO - 0.5))
        rounded = (groups / tried).round_().clamp_(-_INT4_ZERO, _INT4_ZERO - 1)
        error = (rounded * tried - groups).square_().sum(dim=2, keepdim=True)
        better = error < best
        best = torch.where(better, error, best)
        codes, scales = torch.where(better, rounded, codes), torch.where(better, tried, scales)
    halves = (codes + _INT4_ZERO).to(torch.uint8).view(outputs, -1, 2, INT4_GROUP // 2)
    packed = halves[:, :, 0] | (halves[:, :, 1] << 4)
    return packed.view(outputs, inputs // 2), scales[:, :, 0].T.contiguous()


def _unpack_int4(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    groups = four_bit_codes(values, INT4_GROUP // 2).view(len(values), -1, INT4_GROUP)
    return ((groups.float() - _INT4_ZERO) * scales.T[:, :, None]).flatten(1)


def stacked(parts: Sequence[Weight]) -> Weight | None:
    """The outputs of all parts as one matrix, or None where no form holds them without loss."""
    forms = {part.quantization for part in parts}
    if len(forms) > 1:
        if not forms <= _WIDENED:
            return None
        parts = [_as_q6_k_min(part) for part in parts]
    scales = [part.scales for part in parts if part.scales is not None]
    return Weight(
        parts[0].quantization,
        torch.cat([part.values for part in parts]),
        torch.cat(scales, dim=-1) if scales else None,
    )


def _as_q6_k_min(weight: Weight) -> Weight:
    if weight.scales is None or weight.quantization == "q6_k_min":
        return weight
    head = weight.scales[:, :1]
    if weight.quantization == "q6_k":
        nothing = torch.zeros_like(weight.scales[:, :2])
        words = torch.cat([head & 0xFFFF, weight.scales[:, 1:], nothing], dim=1)
        return replace(weight, quantization="q6_k_min", scales=words)
    scales, minima = six_bits(*weight.scales[:, 1:].unbind(dim=1))
    each = words_of(bytes_of(scales).repeat_interleave(2, dim=1))  # for 16 inputs instead of 32
    codes = four_bit_codes(weight.values, 32) + _SIX_BIT_ZERO
    return Weight("q6_k_min", pack_six_bits(codes), torch.cat([head, each, minima], dim=1))
