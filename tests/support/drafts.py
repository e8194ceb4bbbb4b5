"""Drafts written by hand."""

from collections.abc import Sequence

import numpy as np

from engine.drafting.tree import Draft, Source


def draft_of(
    tokens: Sequence[int],
    parents: Sequence[int],
    probs: Sequence[float],
    source: Source,
    cells: Sequence[int],
) -> Draft:
    """Return a draft; `probs` are those of the nodes, each at most its parent's."""
    return Draft(
        np.array(tokens, np.int32),
        np.array(parents, np.int32),
        np.array(probs, np.float64),
        np.full(len(tokens), source, np.uint8),
        np.array(cells, np.int32),
    )


def path_draft(
    tokens: Sequence[int], probs: Sequence[float], source: Source, cells: Sequence[int]
) -> Draft:
    """Return one chain."""
    return draft_of(tokens, range(-1, len(tokens) - 1), probs, source, cells)
