"""The language-model head by its formula, in plain PyTorch. See the package for the contract."""

import torch

from kernels.lm_head import BLOCK, SUM_UNIT, Best, SamplingNoise
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
    """score = (normed W^T) / sqrt(sum_b squares_b / H + eps) logit_scale + noise_scale Gumbel."""
    projected = stream.projected(weight)
    if logits is not None:
        logits.copy_(projected)
    scores, tokens = projected, projected.shape[1]
    if noise is not None:
        drawn = noise.noise_scales[:, None] * gumbel(noise.keys, tokens)
        scores = scores * noise.logit_scales[:, None] + drawn
    tops, places = _blocks(scores).sort(dim=2, descending=True, stable=True)
    firsts = torch.arange(0, tokens, BLOCK, device=scores.device)
    best.scores.copy_(tops[:, :, 0].T)
    best.ids.copy_((places[:, :, 0] + firsts).T)
    raw = _blocks(projected)
    maxima = raw.amax(dim=2)
    best.logits.copy_(raw.gather(2, places[:, :, :1])[:, :, 0].T)
    best.maxima.copy_(maxima.T)
    shares = torch.exp(raw - maxima[:, :, None]) / SUM_UNIT
    best.sums.copy_((shares + 0.5).int().sum(dim=2).T * SUM_UNIT)


def _blocks(values: torch.Tensor) -> torch.Tensor:
    """[R, V] as [R, ceil(V / 64), 64], with -inf behind the last token."""
    padded = torch.nn.functional.pad(values, (0, -values.shape[1] % BLOCK), value=-torch.inf)
    return padded.view(len(values), -1, BLOCK)


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
