"""Random token trees, and the reference's logits for each of their rows."""

from collections.abc import Sequence

import numpy as np
import torch
import transformers

from engine.model.token_tree import TokenTree
from tests.support.greedy import reference_logits

PROMPT: list[int] = np.random.default_rng(1).integers(7, 290, size=40).tolist()


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=1e-4)


def random_tree(rng: np.random.Generator, num_rows: int, vocab_size: int) -> TokenTree:
    """Grow a tree, deep here and wide there: half of the rows follow the row before them."""
    parents = np.full(num_rows, -1, np.int32)
    for row in range(1, num_rows):
        parents[row] = row - 1 if rng.random() < 0.5 else rng.integers(row)
    return TokenTree(rng.integers(vocab_size, size=num_rows), parents)


def path_to(tree: TokenTree, row: int) -> list[int]:
    """Return the rows from the root to `row`, both included."""
    rows = [row]
    while rows[-1] != 0:
        rows.append(int(tree.parents[rows[-1]]))
    return rows[::-1]


def tokens_to(tree: TokenTree, row: int) -> list[int]:
    return [int(tree.token_ids[row]) for row in path_to(tree, row)]


def expected_logits(
    reference: transformers.PreTrainedModel, text: Sequence[int], tree: TokenTree
) -> torch.Tensor:
    """Return logits [rows, vocab] of each row, read from scratch as the end of its own text."""
    expected: dict[int, torch.Tensor] = {}
    for row in reversed(range(tree.num_rows)):
        if row not in expected:  # reading a leaf's text serves all rows above it
            path = path_to(tree, row)
            logits = reference_logits(reference, [*text, *tokens_to(tree, row)])
            expected |= zip(path, logits[-len(path) :], strict=True)
    return torch.stack([expected[row] for row in range(tree.num_rows)])
