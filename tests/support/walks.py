"""Bests of the head, and what the walk makes of them."""

from collections.abc import Callable

import torch

from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import Best
from tests.support.batches import POISON


def random_best(blocks: int, rows: int, device: torch.device | str) -> Best:
    """Random scores; each block's id is one of its own."""
    scores = torch.randn(blocks, rows)
    ids = torch.arange(blocks)[:, None] * 64 + torch.randint(0, 64, (blocks, rows))
    maxima, sums = scores + torch.rand(blocks, rows), 1 + 63 * torch.rand(blocks, rows)
    logits = scores - torch.rand(blocks, rows)  # without the noise
    return Best(*(part.to(device) for part in (scores, ids.int(), logits, maxima, sums)))


def best_of(choices: list[int], device: torch.device | str) -> Best:
    """A row's best token is what `choices` says."""
    scores, ids = torch.zeros(2, len(choices)), torch.zeros(2, len(choices), dtype=torch.int32)
    scores[1], ids[1] = 1.0, torch.tensor(choices)
    parts = (scores, ids, scores, scores, torch.ones(2, len(choices)))
    return Best(*(part.to(device) for part in parts))


def answers_of(
    best: Best,
    batch: BatchMetadata,
    function: Callable[[Best, BatchMetadata, AcceptanceOutput], None],
) -> AcceptanceOutput:
    """What the walk writes into poisoned memory."""
    rows, device = batch.capacity, batch.tokens.device

    def poison(*shape: int) -> torch.Tensor:
        return torch.full(shape, POISON, dtype=torch.int32, device=device)

    output = AcceptanceOutput(
        chosen=poison(rows),
        log_probs=torch.full([rows], torch.nan, device=device),
        top=poison(rows, TOP),
        accepted=poison(batch.num_sequences),
        path=poison(batch.num_sequences, rows),
    )
    function(best, batch, output)
    return output
