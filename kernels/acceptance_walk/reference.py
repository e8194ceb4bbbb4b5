"""Choice and walk in plain PyTorch. See the package for the contract."""

import torch

from kernels.acceptance_walk.answer import TOP, Answer
from kernels.forest import Forest
from kernels.lm_head.best import Best


def acceptance_walk(best: Best, forest: Forest, answer: Answer) -> None:
    """Choose for every row, then walk each sequence's tree."""
    _choose(best, answer)
    for sequence, num_rows in enumerate(forest.num_rows.tolist()):
        path = _walk(forest, answer, int(forest.first_rows[sequence])) if num_rows else []
        answer.accepted[sequence] = len(path)
        answer.path[sequence, : len(path)] = torch.tensor(path, dtype=torch.int32)


def _choose(best: Best, answer: Answer) -> None:
    """Rank the blocks of each row: the best score first, of equals the lowest block."""
    ranked, blocks = best.scores.sort(dim=0, descending=True, stable=True)
    ids = best.ids.gather(0, blocks)[:TOP].T  # [R, up to 8]
    rivals = best.seconds.gather(0, blocks[:1])[0]
    if len(ranked) > 1:
        rivals = torch.maximum(rivals, ranked[1])
    answer.chosen.copy_(ids[:, 0])
    answer.margins.copy_(ranked[0] - rivals)
    answer.top.fill_(-1)
    answer.top[:, : ids.shape[1]] = ids


def _walk(forest: Forest, answer: Answer, root: int) -> list[int]:
    """Offsets from the root to the last row that its parent chose."""
    parents, tokens = forest.parents.tolist(), forest.tokens.tolist()
    path, row = [0], root
    for child, parent in enumerate(parents):  # parents come before their children
        if parent == row and tokens[child] == int(answer.chosen[row]):
            path.append(child - root)
            row = child
    return path
