"""The one interface between decoding and any causal language model: steps over token trees.

A step verifies the rows of a token tree behind what its slot holds, or, without a head, reads a
piece of a prompt. `begin` takes the steps of all sequences at once, so that they share a forward.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import torch

from engine.config import Sampling
from engine.model.token_tree import MAX_ROWS, TokenTree

NUM_TOP = 8  # tokens of a row that are kept for later drafts; the kernels write as many

# Per row the ids that a constraint leaves (ascending int64, not empty), or None for all.
Allowed = Sequence[np.ndarray | None]


class CacheSlot(Protocol):
    """One sequence inside a model: its committed keys and values."""

    length: int  # committed tokens
    capacity: int  # tokens that fit, committed and in flight

    @property
    def num_bytes(self) -> int:
        """Memory of its keys and values."""
        ...

    def copy_from(self, other: Self, length: int) -> None:
        """Hold the first `length` tokens of another slot. Raises ValueError where that cannot be."""
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step, row 0 first; its other rows are forgotten."""
        ...

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on. Raises ValueError beyond `length`."""
        ...


@dataclass(slots=True, eq=False)
class StepInput:
    """One sequence's part of a forward pass; without a head the rows, a chain, are only read."""

    slot: Any  # the model's own `CacheSlot`
    tree: TokenTree
    sampling: Sampling = field(default_factory=Sampling)
    allowed: Allowed | None = None  # None: all ids in all rows
    has_head: bool = True
    wants_logits: bool = False  # of all rows; a benchmark looks at them
    is_dropped: bool = False  # its output is not wanted any more


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What became of a step with a head; nothing of it is committed yet.

    `chosen` int64 [rows]: what the model draws after each row, exactly as plain decoding would.
    `path` int64 [accepted + 1]: the rows that agree, row 0 first, as `verify` finds them.
    `log_probs` float32 [rows]: of what a row chose, the logarithm of the model's probability (at
    temperature 1, among the ids that a constraint leaves), with the bits of plain decoding; it may
    be nan for rows beside the path.
    `top_tokens` gives int64 [rows, NUM_TOP]: likely ids after each row, best first, -1 where there
    are fewer. They are for drafts alone: a GPU may miss some.
    `step_rows` are the rows that the forward took `ms` for, those of other sequences included.
    `logits` float32 [rows, vocab] on the CPU, where they were asked for.
    """

    chosen: np.ndarray
    path: np.ndarray
    log_probs: np.ndarray
    top_tokens: Callable[[], np.ndarray]
    ms: float
    step_rows: int
    logits: torch.Tensor | None = None


class Flight(Protocol):
    """A forward that was begun."""

    def finish(self) -> list[StepOutput | None]:
        """Wait for it. None for a step without a head, and for one that was dropped meanwhile."""
        ...


class CausalModel(Protocol):
    """A causal language model that verifies token trees. All rooms above know models by this alone."""

    vocab_size: int  # columns of the logits
    max_context: int  # positions that the model was made for
    device: str  # where it runs, for reports: `cpu`, `cuda:0`
    dtype_name: str  # how the weights are held, for reports: `int8`, `float32`, `bfloat16`
    # Row counts that steps are padded to, ascending; empty where each count has its cost.
    row_buckets: tuple[int, ...]
    most_rows: int  # that drafts make a step have, so that the text is that of plain decoding
    max_sequences: int  # that go on side by side, sharing each forward
    reserved_bytes: int  # memory that is reserved for slots ahead; 0 where each takes its own

    @property
    def checked(self) -> str:
        """What a check of its device found, and what became worse since; mostly nothing."""
        ...

    @property
    def most_read_rows(self) -> int:
        """Rows that a step without a head may have: 128, or more where that reads faster."""
        ...

    def new_slot(self, capacity: int) -> CacheSlot:
        """An empty slot for `capacity` tokens. Raises NoSpaceError where memory is reserved ahead."""
        ...

    def begin(self, steps: Sequence[StepInput]) -> Flight:
        """Start one forward for the steps of different slots; `finish` may do all the work.

        Raises ValueError where a slot has no room for its rows.
        """
        ...


def prefill(model: CausalModel, slot: CacheSlot, token_ids: Sequence[int]) -> None:
    """Commit `token_ids` behind what the slot holds, while nothing else goes on."""
    start = 0
    while rows := piece_rows(len(token_ids) - start, model.most_read_rows):
        tree = TokenTree.chain(token_ids[start : start + rows])
        model.begin([StepInput(slot, tree, has_head=False)]).finish()
        slot.commit(range(rows))
        start += rows


def piece_rows(unread: int, most: int) -> int:
    """Tokens of the next piece of a prompt: 128 times a power of two within `most`, fewer at its end."""
    while most > MAX_ROWS and most > unread:
        most //= 2
    return min(most, unread)


def run_step(model: CausalModel, step: StepInput) -> StepOutput:
    """Run a step with a head while nothing else goes on; nothing of it is committed."""
    (output,) = model.begin([step]).finish()
    if output is None:
        raise ValueError("a step without a head has no output")
    return output


def check_room(steps: Sequence[StepInput], most_read_rows: int) -> None:
    """Raise ValueError where a step has too many rows, for the model or for what its slot holds."""
    for step in steps:
        length, capacity, rows = step.slot.length, step.slot.capacity, step.tree.num_rows
        most = MAX_ROWS if step.has_head else most_read_rows
        if rows > most:
            raise ValueError(f"a step takes {most} rows, not {rows}")
        if length + rows > capacity:
            raise ValueError(f"{length} + {rows} tokens exceed the slot's {capacity}")
