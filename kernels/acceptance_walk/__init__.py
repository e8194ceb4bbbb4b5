"""What each row chooses, and the longest path of drafted rows that agrees.

Contract of `acceptance_walk(best, batch, output)`, here in PyTorch and in `triton_kernel`, with `best` of
`lm_head`:

- `output.chosen` int32 [R]: the id with the best score, the lowest id of equals.
- `output.log_probs` float32 [R]: of the chosen id, log(probability) = its logit - log sum_v
  exp(logit_v), without noise and at temperature 1.
- `output.top` int32 [R, 8]: the ids of the eight best blocks, best first (so top[:, 0] = chosen;
  of two tokens in one block of 64 the better one). -1 where there are fewer blocks.
- `output.accepted` int32 [S]: rows of sequence s that stand, its root included; 0 where the
  sequence has no rows.
- `output.path` int32 [S, R]: those rows as offsets behind the sequence's first row, ascending.
  The walk goes from a row to its first child whose token the row chose.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from kernels.batch import BatchMetadata
from kernels.lm_head import Best, first_equal

TOP = 8  # tokens of a row kept for later drafts, as in Token Recycling (arXiv 2408.08696)


@dataclass(frozen=True, slots=True)
class AcceptanceOutput:
    """The contract's `output`."""

    chosen: torch.Tensor
    log_probs: torch.Tensor
    top: torch.Tensor
    accepted: torch.Tensor
    path: torch.Tensor


def acceptance_walk(best: Best, batch: BatchMetadata, output: AcceptanceOutput) -> None:
    """Choose for every row; then each sequence follows its drafts, all of them at a time."""
    _choose(best, output)
    count, rows = batch.capacity, torch.arange(batch.capacity, device=batch.tokens.device)
    parents = batch.parents.long()
    agrees = (parents >= 0) & (batch.tokens == output.chosen[parents.clamp_min(0)])
    children = agrees & (parents == rows[:, None])  # [parent, child]
    follower = torch.where(children, rows.int(), count).amin(dim=1).long()
    follower = functional.pad(follower, (0, 1), value=count)  # behind the last row there is none
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
    block = first_equal(scores, scores.amax(dim=1))[:, None].long()
    output.chosen.copy_(best.ids.T.gather(1, block)[:, 0])
    totals = (best.maxima + best.sums.log()).T.contiguous().logsumexp(dim=1)
    output.log_probs.copy_(best.logits.T.gather(1, block)[:, 0] - totals)
    likely = scores.argsort(dim=1, descending=True, stable=True)[:, :TOP]
    output.top.fill_(-1)
    output.top[:, : likely.shape[1]] = best.ids.T.gather(1, likely)
