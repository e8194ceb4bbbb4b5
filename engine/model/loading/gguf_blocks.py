"""Rearrange the blocks of a GGUF file (ggml's `ggml-common.h`) exactly into forms for a GPU."""

from collections.abc import Callable

import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from kernels.blocks import bytes_of, pack_six_bits, six_bits, words_of
from kernels.weight import Weight

_Kind = GGMLQuantizationType
_PAIR = 64  # q8_0 needs a multiple of so many inputs
_SIX_BIT_ZERO = 32  # the code of 0


def own_form(kind: GGMLQuantizationType, stored: torch.Tensor) -> Weight | None:
    """Return a matrix from its bytes [N, any] in the file; None if no form of ours fits exactly."""
    block_inputs, block_bytes = GGML_QUANT_SIZES[kind]
    if not has_own_form(kind, stored.shape[1] // block_bytes * block_inputs):
        return None
    return _READERS[kind](stored.view(len(stored), -1, block_bytes))


def has_own_form(kind: GGMLQuantizationType, inputs: int) -> bool:
    """Whether `own_form` supports a matrix with so many inputs."""
    return kind in _READERS and inputs % _PAIR == 0


def _q4_0(blocks: torch.Tensor) -> Weight:
    codes = torch.cat([blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4], dim=2)
    return _eight_bits(blocks, codes.view(torch.int8) - 8)


def _q5_0(blocks: torch.Tensor) -> Weight:
    """Unpack q5_0: one number holds the fifth bits of 32 codes, lowest bit first."""
    low = torch.cat([blocks[:, :, 6:] & 15, blocks[:, :, 6:] >> 4], dim=2)
    bit = torch.arange(8, dtype=torch.uint8)
    fifth = ((blocks[:, :, 2:6, None] >> bit) & 1).flatten(2)
    return _eight_bits(blocks, (low | (fifth << 4)).view(torch.int8) - 16)


def _eight_bits(blocks: torch.Tensor, codes: torch.Tensor) -> Weight:
    """Join one-byte codes with the scale, a float16 at the start of each block."""
    scales = blocks[:, :, :2].contiguous().view(len(blocks), -1).view(torch.int32)
    return Weight("q8_0", codes.flatten(1), scales.T.contiguous())


def _q5_k(blocks: torch.Tensor) -> Weight:
    """Unpack q5_k: q4_k, and 32 bytes whose bit i of byte j is the fifth bit of input 32 i + j."""
    head, *packed = _words(blocks[:, :, :16]).unbind(dim=1)
    scales, minima = six_bits(*packed)
    each = words_of(bytes_of(scales).repeat_interleave(2, dim=1))  # for 16 inputs instead of 32
    pairs = blocks[:, :, 48:].unflatten(2, (4, 1, 32))
    low = torch.cat([pairs & 15, pairs >> 4], dim=3).flatten(2)
    bit = torch.arange(8, dtype=torch.uint8)[:, None]
    fifth = ((blocks[:, :, None, 16:48] >> bit) & 1).flatten(2)
    codes = (low | (fifth << 4)).flatten(1) + _SIX_BIT_ZERO
    words = torch.cat([head[:, None], each, minima], dim=1)
    return Weight("q6_k_min", pack_six_bits(codes), words)


def _q6_k(blocks: torch.Tensor) -> Weight:
    """Unpack q6_k: two halves of 64 low-bit bytes, two of 32 high-bit bytes, scales, a float16."""
    low, high = (
        blocks[:, :, :128].unflatten(2, (2, 64)),
        blocks[:, :, 128:192].unflatten(2, (2, 32)),
    )
    values = torch.cat([low, high], dim=3).flatten(1)
    none = torch.zeros_like(blocks[:, :, :2])
    head = torch.cat([blocks[:, :, 208:], none], dim=2)
    return Weight("q6_k", values, _words(torch.cat([head, blocks[:, :, 192:208]], dim=2)))


_READERS: dict[GGMLQuantizationType, Callable[[torch.Tensor], Weight]] = {
    _Kind.Q8_0: lambda blocks: _eight_bits(blocks, blocks[:, :, 2:].view(torch.int8)),
    _Kind.Q4_0: _q4_0,
    _Kind.Q5_0: _q5_0,
    _Kind.Q4_K: lambda blocks: Weight(
        "q4_k", blocks[:, :, 16:].flatten(1), _words(blocks[:, :, :16])
    ),
    _Kind.Q5_K: _q5_k,
    _Kind.Q6_K: _q6_k,
}


def _words(scales: torch.Tensor) -> torch.Tensor:
    """View bytes [N, blocks, 4 n] as int32 [blocks, n, N]."""
    words = scales.contiguous().view(len(scales), -1).view(torch.int32)
    return words.view(*scales.shape[:2], -1).permute(1, 2, 0).contiguous()
