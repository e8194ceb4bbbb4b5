"""The one interface between decoding and any causal language model: a token tree over a KV cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numba
import numpy as np
import torch

from engine.config import Sampling

MAX_ROWS = 128
NUM_TOP = 8  # tokens of each verified row that are kept for later drafts

# Per row the ids that a constraint leaves (ascending int64, not empty), or None for all.
Allowed = Sequence[np.ndarray | None]


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
        depths: np.ndarray = _depths(self.parents)
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


@numba.njit("int64[::1](int32[::1])", cache=True)
def _depths(parents: np.ndarray) -> np.ndarray:
    depths = np.zeros(len(parents), np.int64)
    for row in range(1, len(parents)):
        depths[row] = depths[parents[row]] + 1
    return depths


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

    def prefill(self, token_ids: Sequence[int]) -> object:
        """Commit `token_ids` behind what is held."""
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


@dataclass(frozen=True, slots=True)
class StepOrder:
    """What a step verifies, and how its rows choose.

    `allowed` None leaves all ids to all rows.
    """

    tree: TokenTree
    sampling: Sampling
    allowed: Allowed | None = None

    @property
    def logits_rows(self) -> np.ndarray:
        """int64: rows whose choice takes more than the largest score, with or without noise."""
        if self.sampling.temperature > 0 and not self.sampling.takes_all:
            return np.arange(self.tree.num_rows)
        allowed = self.allowed or ()
        return np.array([row for row, ids in enumerate(allowed) if ids is not None], np.int64)


class StepAnswer(Protocol):
    """What became of a step."""

    @property
    def chosen(self) -> np.ndarray:
        """int64 [rows]: what the model draws after each row, exactly as plain decoding would."""
        ...

    @property
    def rows(self) -> np.ndarray:
        """int64 [accepted + 1]: the path of rows that agree, row 0 first, as `verify` finds it."""
        ...

    @property
    def ms(self) -> float:
        """What the step took."""
        ...

    @property
    def step_rows(self) -> int:
        """Rows that it took so long for, those of other sequences included."""
        ...

    def top_tokens(self) -> np.ndarray:
        """Likely ids after each row, int64 [rows, 8], best first, -1 where there are fewer.

        A guess for drafts: a model on a GPU may miss one that stands close to a better one.
        """
        ...


class Stepper(Protocol):
    """A slot whose steps are begun and finished, so that other work fits in between."""

    @property
    def length(self) -> int:
        """Committed tokens."""
        ...

    @property
    def capacity(self) -> int:
        """Tokens that fit, committed and in flight."""
        ...

    def begin(self, order: StepOrder) -> None:
        """Ask for a step, one at a time."""
        ...

    def finish(self) -> StepAnswer:
        """Wait for the step that was begun; nothing is committed yet."""
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the finished step, row 0 first."""
        ...

    def abandon(self) -> None:
        """Forget a step that was begun, if there is one."""
        ...


class ScoredAnswer(StepAnswer, Protocol):
    """The answer of a slot that chooses by itself.

    In rows of `StepOrder.logits_rows`, `chosen` is only what the largest score says.
    """

    @property
    def logits(self) -> torch.Tensor:
        """Float32 [len(logits_rows), vocab], on the CPU."""
        ...


@runtime_checkable
class SteppingSlot(CacheSlot, Protocol):
    """A slot that chooses and walks by itself, as far as scores alone decide."""

    def begin(self, order: StepOrder) -> None:
        """Ask for a step, one at a time."""
        ...

    def finish(self) -> ScoredAnswer:
        """Wait for the step that was begun; nothing is committed yet."""
        ...

    def abandon(self) -> None:
        """Forget a step that was begun, if there is one."""
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

    @property
    def row_buckets(self) -> tuple[int, ...]:
        """Row counts that steps are padded to, ascending; empty where each count has its cost."""
        ...

    @property
    def num_lanes(self) -> int:
        """Sequences that one step can serve."""
        ...

    @property
    def reserved_bytes(self) -> int:
        """Memory that is reserved for slots ahead; 0 where each takes its own."""
        ...

    def expect(self, num_running: int) -> None:
        """So many sequences ask for steps side by side from now on."""
        ...

    def new_slot(self, capacity: int) -> CacheSlot:
        """An empty slot for `capacity` tokens. Raises NoSpaceError where memory is reserved ahead."""
        ...
