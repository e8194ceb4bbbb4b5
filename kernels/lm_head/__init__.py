"""The language-model head: of each block of the vocabulary, each row's best and the sum of all.

Contract of `lm_head(stream, weight, noise, best, logits)`, here in PyTorch and in `triton_kernel`:

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
from torch.nn import functional

from kernels.product import projected
from kernels.residual import ResidualStream
from kernels.weight import Weight

BLOCK = 64  # tokens of the vocabulary that one best stands for
SUM_UNIT = 2.0**-24  # of which sums are whole numbers, so that they do not depend on their order
_WORD = 0xFFFFFFFF  # 32 bits


@dataclass(frozen=True, slots=True)
class Best:
    """Of each block of 64 tokens and each row, all [ceil(V / 64), R], float32 but for the ids.

    `scores`, `logits` and `ids` int32 of the best token, the lowest id of equals; `maxima`, the
    largest logit; `sums`, sum_v exp(logit_v - maximum), each summand rounded to `SUM_UNIT`.
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


def lm_head(
    stream: ResidualStream,
    weight: Weight,
    noise: SamplingNoise | None,
    best: Best,
    logits: torch.Tensor | None,
) -> None:
    """Of each block of 64 tokens the best score, its id and logit, and the sum of its exponentials."""
    raw = projected(stream, weight)
    if logits is not None:
        logits.copy_(raw)
    scores = raw
    if noise is not None:
        drawn = noise.noise_scales[:, None] * gumbel(noise.keys, raw.shape[1])
        scores = raw * noise.logit_scales[:, None] + drawn
    blocks, raw_blocks = _blocks(scores), _blocks(raw)
    tops = blocks.amax(dim=2)
    places = first_equal(blocks, tops)
    maxima = raw_blocks.amax(dim=2)
    shares = torch.exp(raw_blocks - maxima[:, :, None]) / SUM_UNIT
    best.scores.copy_(tops.T)
    best.ids.copy_((places + torch.arange(0, raw.shape[1], BLOCK, device=raw.device)).T)
    best.logits.copy_(raw_blocks.gather(2, places[:, :, None].long())[:, :, 0].T)
    best.maxima.copy_(maxima.T)
    best.sums.copy_((shares + 0.5).int().sum(dim=2).T * SUM_UNIT)


def first_equal(values: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The first place of the last dimension where `wanted` stands, int32; for NaN the last place."""
    last = values.shape[-1] - 1
    places = torch.arange(last + 1, device=values.device, dtype=torch.int32)
    return torch.where(values == wanted[..., None], places, last).amin(dim=-1)


def gumbel(keys: torch.Tensor, tokens: int) -> torch.Tensor:
    """Gumbel(key, id) of `SamplingNoise` for the ids 0..tokens-1, float32 [R, tokens]."""
    ids = torch.arange(tokens, device=keys.device)
    key_0, key_1 = (keys.long() & _WORD).unbind(dim=1)
    h = (ids * 0x9E3779B1 + key_0[:, None]) & _WORD
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & _WORD
    h = ((h ^ (h >> 15) ^ key_1[:, None]) * 0x846CA68B) & _WORD
    h ^= h >> 16
    t = ((h >> 9).float() + 0.5) / 2.0**23
    return -torch.log(-torch.log(1.0 - t))


def _blocks(values: torch.Tensor) -> torch.Tensor:
    """[R, V] as [R, ceil(V / 64), 64], with -inf behind the last token."""
    padded = functional.pad(values, (0, -values.shape[1] % BLOCK), value=-torch.inf)
    return padded.view(len(values), -1, BLOCK)
