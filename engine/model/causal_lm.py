"""The one interface between decoding and any causal language model: a token tree over a KV cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch

MAX_ROWS = 128


@dataclass(frozen=True, slots=True)
class TokenTree:
    """Rows that one forward pass verifies. Row 0 is the current token; the others are drafted.

    `token_ids` int64 [rows], `parents` int32 [rows] with parents[0] = -1 and parents[i] < i.
    """

    token_ids: np.ndarray
    parents: np.ndarray

    def __post_init__(self) -> None:
        rows = self.token_ids.shape[0]
        if not 1 <= rows <= MAX_ROWS or self.parents.shape != (rows,):
            raise ValueError(f"a token tree has 1 to {MAX_ROWS} rows and a parent each, got {rows}")
        order = np.arange(rows)
        if self.parents[0] != -1 or np.any(self.parents >= order) or np.any(self.parents[1:] < 0):
            raise ValueError("row 0 is the root, and every other row's parent comes before it")

    @property
    def num_rows(self) -> int:
        """Rows of the step, the current token included."""
        return int(self.token_ids.shape[0])

    @property
    def depths(self) -> np.ndarray:
        """int64 [rows]: 0 for the current token, its parent's depth plus one for the others."""
        depths = np.zeros(self.num_rows, np.int64)
        for row in range(1, self.num_rows):
            depths[row] = depths[self.parents[row]] + 1
        return depths

    @property
    def ancestors(self) -> np.ndarray:
        """bool [rows, rows]: row i sees row j, that is j is i or one of its ancestors."""
        mask = np.eye(self.num_rows, dtype=bool)
        for row in range(1, self.num_rows):
            mask[row] |= mask[self.parents[row]]
        return mask

    @classmethod
    def chain(cls, token_ids: Sequence[int]) -> "TokenTree":
        """Rows that follow each other, as plain decoding (one row) and prefill tails have them."""
        ids = np.asarray(token_ids, np.int64)
        return cls(ids, np.arange(-1, len(ids) - 1, dtype=np.int32))


class CacheSlot(Protocol):
    """One sequence inside a model: its committed keys and values, and the forward over them.

    The order of calls is `prefill`, then `step` and `commit` in turn; `truncate` at any time
    between them.
    """

    @property
    def length(self) -> int:
        """Committed tokens."""
        ...

    @property
    def capacity(self) -> int:
        """Tokens that fit, committed and in flight."""
        ...

    @property
    def num_bytes(self) -> int:
        """Memory of its keys and values."""
        ...

    def copy_from(self, other: Self, length: int) -> None:
        """Hold the first `length` tokens of another slot of this model, and nothing else.

        Raises ValueError where they are not there or do not fit.
        """
        ...

    def prefill(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Commit `token_ids` behind what is held; logits of the last one, float32 [1, vocab]."""
        ...

    def step(self, tree: TokenTree) -> torch.Tensor:
        """Logits of every row, float32 [rows, vocab]; nothing is committed yet."""
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step, row 0 first; its other rows are forgotten."""
        ...

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on. Raises ValueError beyond `length`."""
        ...


class CausalModel(Protocol):
    """A causal language model that verifies token trees. All rooms above know only this."""

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        ...

    @property
    def max_context(self) -> int:
        """Positions that the model was made for."""
        ...

    @property
    def device(self) -> str:
        """Where it runs, for reports: `cpu`, `cuda:0`."""
        ...

    @property
    def dtype_name(self) -> str:
        """How the weights are held, for reports: `int8`, `float32`, `bfloat16`."""
        ...

    def new_slot(self, capacity: int) -> CacheSlot:
        """An empty slot for `capacity` tokens."""
        ...
