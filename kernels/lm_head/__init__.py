"""The language-model head: of each block of the vocabulary, the best two of each row.

Contract, in every implementation of `lm_head(stream, weight, noise, best, logits)`:

    logit_rv = (normed_r W_v) / sqrt(sum_b squares_br / H + eps)
    score_rv = logit_rv * logit_scale_r + noise_scale_r Gumbel(key_r, v)

- `stream` is a `ResidualStream` of R rows. `weight` has V outputs.
- `noise` is a `SamplingNoise`, or None where all rows are greedy: then score = logit.
- Writes `best`, a `Best`: of each block of 64 tokens the best score, its id and the next score.
- Writes `logits` float32 [R, V] where it is not None.
"""

from dataclasses import dataclass

import torch

BLOCK = 64  # tokens of the vocabulary that one best pair stands for


@dataclass(frozen=True, slots=True)
class Best:
    """Of each block of 64 tokens and each row: `scores` float32, `ids` int32, `seconds` float32.

    All [ceil(V / 64), R]. Of equal scores the lowest id; `seconds` is the next best score of the
    block, -inf in a block of one token.
    """

    scores: torch.Tensor
    ids: torch.Tensor
    seconds: torch.Tensor


@dataclass(frozen=True, slots=True)
class SamplingNoise:
    """How rows are sampled: score = logit * logit_scale + noise_scale * Gumbel(key, id).

    `logit_scales` float32 [R], one over the temperature, or 1; `noise_scales` float32 [R], 1, or 0
    in a greedy row; `keys` int32 [R, 2], 64 random bits of the row's seed and place.

    Gumbel(key, id) = -log(-log(1 - t)), t = (h >> 9 + 0.5) / 2^23, with the hash of unsigned 32
    bits that the CPU's sampling takes too. In float32 t and 1 - t are exact, and never 0 or 1:
        h = id * 0x9E3779B1 + key_0;  h ^= h >> 16;  h *= 0x7FEB352D;  h ^= (h >> 15) ^ key_1
        h *= 0x846CA68B;  h ^= h >> 16
    """

    logit_scales: torch.Tensor
    noise_scales: torch.Tensor
    keys: torch.Tensor
