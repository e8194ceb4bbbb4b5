"""Matrices that a product reads as one, whose forms in a model file may differ.

A product takes one form: its loop is compiled for it. Files of four bits keep six for the values of
some layers, beside queries and keys of four. The wider form holds both without loss; of a 7b model
that is 1 % more bytes, where a product of its own for the values would be a launch in each layer.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from kernels.blocks.pytorch import bytes_of, four_bit_codes, pack_six_bits, six_bits, words_of
from kernels.weight import Weight

_WIDENED = {"q4_k", "q6_k", "q6_k_min"}
_SIX_BIT_ZERO = 32  # the code of 0


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
