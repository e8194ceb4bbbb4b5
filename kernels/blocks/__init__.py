"""Matrices in the blocks of model files, as a GPU reads them: a few bits per weight and their scales.

What a file says is held as it is: codes that bfloat16 holds exactly, and the scales and minima of
their groups, so nothing is rounded a second time. A weight is

    w = scale_group code - minimum_group        (there are minima in q4_k and q6_k_min alone)

- A product sums code times input in float32, and scales the sum, for each group of 32 inputs; 16
  in the forms of six bits, 128 in `int4_zeros`. Groups are added in their order.
- Minima, whole numbers of 6 bits, are multiplied by the inputs and scaled like codes.
- Scales and minima are products of a float16 and a whole number, which float32 holds exactly. It
  also holds the product of a scale and a code in every form without minima.
- This file unpacks by PyTorch, `triton_kernel.py` multiplies and looks rows up.

How the forms lie in memory, of N outputs and K inputs:

q8_0: `values` int8 [N, K], the codes. `scales` int32 [K / 64, N], the float16 of two groups of 32,
    the first in the low half.
q4_k: `values` uint8 [N, K / 2]: of 64 inputs, byte j of 32 holds input j in its low half and input
    j + 32 in its high half. `scales` int32 [K / 256, 4, N], of 256 inputs the 16 bytes that a file
    holds: float16 of the scales and of the minima, then 6 bits of each for 8 groups of 32.
q6_k: `values` uint8 [N, 3 K / 4]: of 128 inputs, byte j of 64 holds the low bits of input j in its
    low half and of input j + 64 in its high half; byte j of the 32 behind them the two high bits of
    the inputs j, j + 32, j + 64, j + 96, lowest first. Codes 0 to 63 mean code - 32. `scales` int32
    [K / 256, 5, N]: a float16, and 16 signed bytes for groups of 16.
q6_k_min: q6_k with minima: the float16 of the minima above that of the scales, and behind the bytes
    of the scales 8 of minima, for groups of 32. `scales` int32 [K / 256, 7, N]. It holds q4_k too,
    and q6_k, for matrices that are read as one, and the file's form of 5 bits.
int4_zeros: `values` uint8 [N, K / 2] like int4. `scales` int32 [K / 128, N]: a float16, and above it
    the code of zero, 0 to 16.
"""

import torch

# Where the bytes of a word begin; no tensor, which would have to be copied to the device.
_BYTES = range(0, 32, 8)
_MASKS = 0x3F3F3F3F, 0x0F0F0F0F, 0x30303030  # 6, the low 4 and the high 2 of each byte


def unpacked(form: str, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The weights that a form holds, float32 [N, K]."""
    if form == "q8_0":
        factors = torch.stack([_float16(scales), _float16(scales >> 16)], dim=1)
        return _scaled(values.float(), factors)
    if form == "int4_zeros":
        codes = four_bit_codes(values, 64).float()
        zeros = _spread((scales >> 16).float(), codes.shape[1])
        return _scaled(codes - zeros, _float16(scales))
    head = scales[:, 0]
    if form == "q4_k":
        codes = four_bit_codes(values, 32).float()
        factors, minima = map(bytes_of, six_bits(*scales[:, 1:].unbind(dim=1)))
    else:
        codes = _six_bit_codes(values)
        factors, minima = bytes_of(scales[:, 1:5]).to(torch.int8), bytes_of(scales[:, 5:])
    weights = _scaled(codes, factors.float() * _float16(head)[:, None])
    if form == "q6_k":
        return weights
    subtracted = minima.float() * _float16(head >> 16)[:, None]
    return weights - _spread(subtracted, codes.shape[1])


def six_bits(
    first: torch.Tensor, second: torch.Tensor, third: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and minima of 8 groups, a byte each, from the 12 bytes of q4_k: [.., 2, N] each.

    The first four scales stand in the low bits of `first`, their minima in those of `second`; of the
    others, the low four bits in `third` and the high two above those of the first four.
    """
    six, low, high = _MASKS
    scales = [first & six, (third & low) | ((first >> 2) & high)]
    minima = [second & six, ((third >> 4) & low) | ((second >> 2) & high)]
    return torch.stack(scales, dim=-2), torch.stack(minima, dim=-2)


def words_of(numbers: torch.Tensor) -> torch.Tensor:
    """Four numbers [.., 4 n, N] of a byte in each int32 [.., n, N], the lowest first."""
    parts = (numbers.int() & 255).unflatten(-2, (-1, 4)).unbind(dim=-2)
    words = [part << shift for part, shift in zip(parts, _BYTES, strict=True)]
    joined: torch.Tensor = torch.stack(words).sum(dim=0, dtype=torch.int32)
    return joined


def bytes_of(words: torch.Tensor) -> torch.Tensor:
    """The bytes of int32 [blocks, n, N], as groups follow one another: [blocks, 4 n, N]."""
    return torch.stack([(words >> shift) & 255 for shift in _BYTES], dim=2).flatten(1, 2)


def four_bit_codes(values: torch.Tensor, distance: int) -> torch.Tensor:
    """Codes [N, K], of bytes whose low and high half are `distance` inputs apart."""
    halves = values.view(len(values), -1, 1, distance)
    return torch.cat([halves & 15, halves >> 4], dim=2).flatten(1)


def pack_six_bits(codes: torch.Tensor) -> torch.Tensor:
    """The `values` of q6_k from codes 0 to 63, uint8 [N, K]."""
    parts = codes.view(len(codes), -1, 4, 32)
    low = parts & 15
    lows = low[:, :, :2] | (low[:, :, 2:] << 4)
    high = parts >> 4
    highs = high[:, :, 0] | (high[:, :, 1] << 2) | (high[:, :, 2] << 4) | (high[:, :, 3] << 6)
    return torch.cat([lows.flatten(2), highs], dim=2).flatten(1)


def _six_bit_codes(values: torch.Tensor) -> torch.Tensor:
    blocks = values.view(len(values), -1, 96)
    low, high = blocks[:, :, :64], blocks[:, :, 64:]
    lows = torch.cat([low & 15, low >> 4], dim=2)
    highs = torch.cat([(high >> shift) & 3 for shift in (0, 2, 4, 6)], dim=2)
    return (lows | (highs << 4)).flatten(1).float() - 32


def _float16(words: torch.Tensor) -> torch.Tensor:
    """The float16 in the low halves of int32, as float32."""
    return words.to(torch.int16).view(torch.float16).float()


def _scaled(codes: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Codes [N, K] by the factors [.., groups, N] of their groups."""
    return codes * _spread(factors, codes.shape[1])


def _spread(factors: torch.Tensor, inputs: int) -> torch.Tensor:
    """Numbers of groups [.., groups, N] as those of their inputs [N, K]."""
    groups = factors.reshape(-1, factors.shape[-1])
    return groups.T.repeat_interleave(inputs // len(groups), dim=1)
