"""Drafts written by hand."""

from collections.abc import Sequence

import numpy as np

from engine.drafting.tree import Draft, Source


def path_draft(
    tokens: Sequence[int], probs: Sequence[float], source: Source, cells: Sequence[int]
) -> Draft:
    """Return one chain; `probs` are those of the nodes, each at most its parent's."""
    count = len(tokens)
    return Draft(
        np.array(tokens, np.int32),
        np.arange(-1, count - 1, dtype=np.int32),
        np.array(probs, np.float64),
        np.full(count, source, np.uint8),
        np.array(cells, np.int32),
    )
