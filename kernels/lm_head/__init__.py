"""The language-model head: of each block of the vocabulary, each row's best and the sum of all.

Contract, in every implementation of `lm_head(stream, weight, noise, best, logits)`:

    logit_rv = (normed_r W_v) / sqrt(sum_b squares_br / H + eps)
    score_rv = logit_rv * logit_scale_r + noise_scale_r Gumbel(key_r, v)

- `stream` is a `ResidualStream` of R rows. `weight` has V outputs.
- `noise` is a `SamplingNoise`, or None where all rows are greedy: then score = logit.
- Writes `best`, a `Best`: of each block of 64 tokens the best score, its id and its logit, and
  what the row's log-sum-exp is made of.
- Writes `logits` float32 [R, V] where it is not None.
"""

from dataclasses import dataclass

import torch

BLOCK = 64  # tokens of the vocabulary that one best stands for
SUM_UNIT = 2.0**-24  # of which sums are whole numbers, so that they do not depend on their order


@dataclass(frozen=True, slots=True)
class Best:
    """Of each block of 64 tokens and each row, all [ceil(V / 64), R], float32 but for the ids.

    `scores` and `ids` int32 of the best token, of equals the one with the lowest id, and its
    `logits`; `maxima`, the largest logit; `sums`, sum_v exp(logit_v - maximum), each summand rounded
    to `SUM_UNIT`.
    """

    scores: torch.Tensor
    ids: torch.Tensor
    logits: torch.Tensor
    maxima: torch.Tensor
    sums: torch.Tensor


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
