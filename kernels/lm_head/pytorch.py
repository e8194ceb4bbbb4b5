"""The language-model head in PyTorch. See the package for the contract."""

import torch
from torch.nn import functional

from kernels.lm_head import BLOCK, SUM_UNIT, Best, SamplingNoise
from kernels.product.pytorch import projected
from kernels.residual import ResidualStream
from kernels.weight import Weight

_WORD = 0xFFFFFFFF  # 32 bits


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
