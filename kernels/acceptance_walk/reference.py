"""Choice and walk in plain PyTorch. See the package for the contract."""

import torch

from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import Best


def acceptance_walk(best: Best, batch: BatchMetadata, output: AcceptanceOutput) -> None:
    """Choose for every row, then walk each sequence's tree."""
    _choose(best, output)
    for sequence, num_rows in enumerate(batch.num_rows.tolist()):
        path = _walk(batch, output, int(batch.first_rows[sequence])) if num_rows else []
        output.accepted[sequence] = len(path)
        output.path[sequence, : len(path)] = torch.tensor(path, dtype=torch.int32)


def _choose(best: Best, output: AcceptanceOutput) -> None:
    """Rank the blocks of each row: the best score first, of equals the lowest block."""
    blocks = best.scores.argsort(dim=0, descending=True, stable=True)
    ids = best.ids.gather(0, blocks)[:TOP].T  # [R, up to 8]
    logits = best.logits.gather(0, blocks[:1])[0]
    output.chosen.copy_(ids[:, 0])
    output.log_probs.copy_(logits - (best.maxima + best.sums.log()).logsumexp(dim=0))
    output.top.fill_(-1)
    output.top[:, : ids.shape[1]] = ids


def _walk(batch: BatchMetadata, output: AcceptanceOutput, root: int) -> list[int]:
    """Offsets from the root to the last row that its parent chose."""
    parents, tokens = batch.parents.tolist(), batch.tokens.tolist()
    path, row = [0], root
    for child, parent in enumerate(parents):  # parents come before their children
        if parent == row and tokens[child] == int(output.chosen[row]):
            path.append(child - root)
            row = child
    return path
