"""What each row chooses, and the longest path of drafted rows that agrees.

Contract, in every implementation of `acceptance_walk(best, batch, output)`, with `best` of
`lm_head`:

- `output.chosen` int32 [R]: the id with the best score, the lowest id of equals.
- `output.log_probs` float32 [R]: of the chosen id, log(probability) = its logit - log sum_v
  exp(logit_v), without noise and at temperature 1.
- `output.top` int32 [R, 8]: the ids of the eight best blocks, best first (so top[:, 0] = chosen;
  of two tokens in one block of 64 the better one). -1 where there are fewer blocks.
- `output.accepted` int32 [S]: rows of sequence s that stand, its root included; 0 where the
  sequence has no rows.
- `output.path` int32 [S, R]: those rows as offsets behind the sequence's first row, ascending.
  The walk goes from the root to the first row whose parent it stands on and whose token that
  parent chose.
"""

from dataclasses import dataclass

import torch

TOP = 8  # tokens of a row that are kept for later drafts


@dataclass(frozen=True, slots=True)
class AcceptanceOutput:
    """The contract's `output`."""

    chosen: torch.Tensor
    log_probs: torch.Tensor
    top: torch.Tensor
    accepted: torch.Tensor
    path: torch.Tensor
