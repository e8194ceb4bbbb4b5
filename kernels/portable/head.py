"""The language-model head, the choice of every row, and the walk."""

import torch
from torch.nn import functional

from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import BLOCK, SUM_UNIT, Best, SamplingNoise
from kernels.lm_head.reference import gumbel
from kernels.portable.products import projected
from kernels.residual import ResidualStream
from kernels.weight import Weight


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
    places = _first_equal(blocks, tops)
    maxima = raw_blocks.amax(dim=2)
    shares = torch.exp(raw_blocks - maxima[:, :, None]) / SUM_UNIT
    best.scores.copy_(tops.T)
    best.ids.copy_((places + torch.arange(0, raw.shape[1], BLOCK, device=raw.device)).T)
    best.logits.copy_(raw_blocks.gather(2, places[:, :, None].long())[:, :, 0].T)
    best.maxima.copy_(maxima.T)
    best.sums.copy_((shares + 0.5).int().sum(dim=2).T * SUM_UNIT)


def acceptance_walk(best: Best, batch: BatchMetadata, output: AcceptanceOutput) -> None:
    """Choose for every row; then each sequence follows its drafts, all of them at a time."""
    _choose(best, output)
    count, rows = batch.capacity, torch.arange(batch.capacity, device=batch.tokens.device)
    parents = batch.parents.long()
    agrees = (parents >= 0) & (batch.tokens == output.chosen[parents.clamp_min(0)])
    children = agrees & (parents == rows[:, None])  # [parent, child]
    follower = torch.where(children, rows.int(), count).amin(dim=1).long()
    follower = functional.pad(follower, (0, 1), value=count)  # nobody follows on nobody
    row = torch.where(batch.num_rows > 0, batch.first_rows, count).long()
    path = []
    for _ in range(count):
        path.append(row)
        row = follower[row]
    walked = torch.stack(path, dim=1)  # [S, R]
    is_row = walked < count
    output.accepted.copy_(is_row.sum(dim=1))
    output.path.copy_(torch.where(is_row, walked - batch.first_rows[:, None], 0))


def _choose(best: Best, output: AcceptanceOutput) -> None:
    scores = best.scores.T.contiguous()  # [R, blocks]
    block = _first_equal(scores, scores.amax(dim=1))[:, None].long()
    output.chosen.copy_(best.ids.T.gather(1, block)[:, 0])
    totals = (best.maxima + best.sums.log()).T.contiguous().logsumexp(dim=1)
    output.log_probs.copy_(best.logits.T.gather(1, block)[:, 0] - totals)
    likely = scores.topk(min(TOP, scores.shape[1]), dim=1).indices
    output.top.fill_(-1)
    output.top[:, : likely.shape[1]] = best.ids.T.gather(1, likely)


def _first_equal(values: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The first place of the last dimension where `wanted` stands, int32."""
    places = torch.arange(values.shape[-1], device=values.device, dtype=torch.int32)
    return torch.where(values == wanted[..., None], places, values.shape[-1]).amin(dim=-1)


def _blocks(values: torch.Tensor) -> torch.Tensor:
    """[R, V] as [R, ceil(V / 64), 64], with -inf behind the last token."""
    padded = functional.pad(values, (0, -values.shape[1] % BLOCK), value=-torch.inf)
    return padded.view(len(values), -1, BLOCK)
