"""A step as it is asked for, and what becomes of it: the words between decoder and model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from engine.config import Sampling
from engine.model.token_tree import TokenTree
from kernels.acceptance_walk import TOP

NUM_TOP = TOP  # tokens of each verified row that are kept for later drafts

# Per row the ids that a constraint leaves (ascending int64, not empty), or None for all.
Allowed = Sequence[np.ndarray | None]


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


@dataclass(frozen=True, slots=True)
class FullOrder(StepOrder):
    """A step that is asked for all that its rows say."""

    @property
    def logits_rows(self) -> np.ndarray:
        """Every row."""
        return np.arange(self.tree.num_rows)


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

    def margins_of(self, rows: np.ndarray) -> np.ndarray:
        """Float32 [len(rows)]: the best score of each of these rows less the next best."""
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
