"""The rows that one forward pass verifies, as a tree of tokens, and the path that it agrees to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.compiled import njit

MAX_ROWS = 128
MAX_READ_ROWS = 256  # of a chain that is only read, by models that take so many


@dataclass(frozen=True, slots=True)
class TokenTree:
    """Rows that one forward pass verifies. Row 0 is the current token; the others are drafted.

    `token_ids` int64 [rows], `parents` int32 [rows] with parents[0] = -1 and parents[i] < i.
    """

    token_ids: np.ndarray
    parents: np.ndarray

    def __post_init__(self) -> None:
        rows = self.token_ids.shape[0]
        if not 1 <= rows <= MAX_READ_ROWS or self.parents.shape != (rows,):
            raise ValueError(f"a tree has 1 to {MAX_READ_ROWS} rows and a parent each, got {rows}")
        if not _are_parents(self.parents):
            raise ValueError("row 0 is the root, and every other row's parent comes before it")
        if rows > MAX_ROWS and not np.array_equal(self.parents, np.arange(-1, rows - 1)):
            raise ValueError(f"of more than {MAX_ROWS} rows each follows the one before it")

    @property
    def num_rows(self) -> int:
        """Rows of the step, the current token included."""
        return int(self.token_ids.shape[0])

    @property
    def depths(self) -> np.ndarray:
        """int64 [rows]: 0 for the current token, its parent's depth plus one for the others."""
        depths: np.ndarray = depths_of(self.parents)
        return depths

    @property
    def ancestors(self) -> np.ndarray:
        """bool [rows, rows]: row i sees row j, that is j is i or one of its ancestors."""
        mask: np.ndarray = _ancestors_of(self.parents)
        return mask

    @classmethod
    def chain(cls, token_ids: Sequence[int]) -> "TokenTree":
        """Rows that follow each other, as plain decoding (one row) and prefill tails have them."""
        ids = np.asarray(token_ids, np.int64)
        return cls(ids, np.arange(-1, len(ids) - 1, dtype=np.int32))


@njit("boolean(int32[::1])", cache=True)
def _are_parents(parents: np.ndarray) -> bool:
    num_wrong = int(parents[0] != -1)
    for row in range(1, len(parents)):
        num_wrong += not 0 <= parents[row] < row
    return num_wrong == 0


@njit("boolean[:, ::1](int32[::1])", cache=True)
def _ancestors_of(parents: np.ndarray) -> np.ndarray:
    mask = np.zeros((len(parents), len(parents)), np.bool_)
    for row in range(len(parents)):
        if row:
            mask[row] = mask[parents[row]]
        mask[row, row] = True
    return mask


@njit("int64[::1](int32[::1])", cache=True)
def depths_of(parents: np.ndarray) -> np.ndarray:
    """int64 [nodes]: 0 for a node whose parent is -1; parents come before their children."""
    depths = np.zeros(len(parents), np.int64)
    for node, parent in enumerate(parents):
        if parent >= 0:
            depths[node] = depths[parent] + 1
    return depths


def verify(token_ids: np.ndarray, parents: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Walk from row 0 to the child that equals the row's own choice, as far as there is one.

    `token_ids` and `chosen` int64 [rows], `parents` int32 [rows]: `chosen` is what the model draws
    after each row exactly as plain decoding would, so the walk writes plain decoding's text.
    Returns the rows that agree, int64 [accepted + 1], row 0 first. The last one's choice, the bonus
    token, has no keys and values yet.
    """
    path: np.ndarray = _verify(token_ids, parents, chosen)
    return path


@njit("int64[::1](int64[::1], int32[::1], int64[::1])", cache=True)
def _verify(token_ids: np.ndarray, parents: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    path, depth = np.zeros(len(token_ids), np.int64), 0
    # Parents come before children, so one pass meets the path in its order.
    for row in range(1, len(token_ids)):
        if parents[row] == path[depth] and token_ids[row] == chosen[path[depth]]:
            depth += 1
            path[depth] = row
    return path[: depth + 1]
