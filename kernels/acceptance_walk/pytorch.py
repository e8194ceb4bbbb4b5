"""Choice and walk in PyTorch. See the package for the contract."""

import torch
from torch.nn import functional

from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import Best
from kernels.lm_head.pytorch import first_equal


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
    block = first_equal(scores, scores.amax(dim=1))[:, None].long()
    output.chosen.copy_(best.ids.T.gather(1, block)[:, 0])
    totals = (best.maxima + best.sums.log()).T.contiguous().logsumexp(dim=1)
    output.log_probs.copy_(best.logits.T.gather(1, block)[:, 0] - totals)
    likely = scores.argsort(dim=1, descending=True, stable=True)[:, :TOP]
    output.top.fill_(-1)
    output.top[:, : likely.shape[1]] = best.ids.T.gather(1, likely)
