"""Draft trees: drafted tokens with parents, best first. Drafters fill them, verification walks them.

No torch here: a tree is a few small numpy arrays.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np


class Source(IntEnum):
    """Where a drafted token came from. 0 to 9 are sources of the n-gram pool."""

    DEAD = 0  # a tombstone: supplies context, drafts nothing
    EDITED_FILE = 1
    SUFFIX = 2
    OPEN_BUFFER = 3
    PREVIOUS_COMPLETION = 4
    GENERATED = 5
    DELETED = 6
    REPOSITORY = 7
    HISTORY = 8
    LIBRARY = 9
    WINDOW = 10
    RECYCLER = 11


class Draft(NamedTuple):
    """Drafted nodes below a root, the last emitted token. Shapes [nodes].

    Best first and parents before children, so every prefix of the arrays is a valid tree.
    """

    tokens: np.ndarray  # int32
    parents: np.ndarray  # int32, index of the parent node, -1 at the root
    probs: np.ndarray  # float64, calibrated probability that the node is accepted
    sources: np.ndarray  # uint8, Source
    cells: np.ndarray  # int32, cell of the source's acceptance table, for learning
