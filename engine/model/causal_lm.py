"""The interface between decoding and any causal language model: steps over token trees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from engine.config import Sampling
from engine.model.fim import FimFormat
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.model.tokenizer import Tokenizer

NUM_TOP = 8  # likely tokens per row, kept for later drafts; the kernels write this many

# Per row, the ids that a constraint allows (ascending int64, not empty), or None for all ids.
Allowed = Sequence[np.ndarray | None]


class CacheSlot(Protocol):
    """One sequence inside a model: its committed keys and values."""

    length: int  # committed tokens
    capacity: int  # tokens that fit, committed and in flight

    @property
    def num_bytes(self) -> int:
        """Return the memory that its keys and values take."""
        ...

    def copy_from(self, other: Self, length: int) -> None:
        """Copy the first `length` tokens of `other`, which has as many."""
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the last step, row 0 first, and forget its other rows."""
        ...

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        ...


@dataclass(slots=True, eq=False)
class StepInput:
    """One sequence's part of a forward pass: a tree to verify, or a piece of a prompt to read."""

    slot: Any  # the model's own `CacheSlot`
    tree: TokenTree  # continues the slot
    sampling: Sampling = field(default_factory=Sampling)
    allowed: Allowed | None = None  # None: all ids in all rows
    has_head: bool = True  # without one, the tree is a chain and only read
    wants_logits: bool = False  # return the logits of all rows, for benchmarks
    is_dropped: bool = False  # nobody waits for the output


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The result of a step with a head, not yet committed."""

    chosen: np.ndarray  # int64 [rows]: the token drawn after each row, as in plain decoding
    path: np.ndarray  # int64 [accepted + 1]: the rows that agree, row 0 first, found by `verify`
    # float32 [rows]: each chosen token's, bit for bit as in plain decoding (temperature 1, among
    # the allowed ids). Rows off the path may be nan.
    log_probs: np.ndarray
    # Gives int64 [rows, NUM_TOP]: likely ids after each row, best first, padded with -1. They only
    # feed drafts, so a GPU may miss some.
    top_tokens: Callable[[], np.ndarray]
    ms: float
    step_rows: int  # rows computed in `ms`, those of other sequences included
    logits: np.ndarray | None = None  # float32 [rows, vocab], if requested


class Flight(Protocol):
    """A forward pass in progress; `finish` may do all the work."""

    def finish(self) -> list[StepOutput | None]:
        """Wait for the outputs: None for a step without a head or dropped meanwhile."""
        ...


class CausalModel(Protocol):
    """A causal language model that verifies token trees; higher layers depend on nothing else."""

    vocab_size: int  # columns of the logits
    max_context: int  # positions that the model was made for
    device: str  # where it runs, for reports: `cpu`, `cuda:0`
    dtype_name: str  # storage type of the weights, for reports: `int8`, `float32`, `bfloat16`
    row_buckets: tuple[int, ...]  # rows that steps are padded to, ascending; empty: no padding
    most_rows: int  # most rows of a step with drafts that keep the text of plain decoding
    max_sequences: int  # most sequences that share a forward pass

    @property
    def checked(self) -> str:
        """Return what the device check found and what degraded since; usually empty."""
        ...

    @property
    def most_read_rows(self) -> int:
        """Return the most rows of a step without a head: 128, or more where that reads faster."""
        ...

    def kv_bytes(self, tokens: int) -> int:
        """Return the memory to keep prompts of so many tokens in, or what all slots share."""
        ...

    def new_slot(self, capacity: int) -> CacheSlot:
        """Return an empty slot. Raises NoSpaceError if the reserved memory is too small."""
        ...

    def begin(self, steps: Sequence[StepInput]) -> Flight:
        """Start one pass for steps of different slots. Raises ValueError if a slot has no room."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run."""

    name: str
    fingerprint: str  # changes whenever the model's files do
    causal_lm: CausalModel
    tokenizer: Tokenizer
    fim: FimFormat
    where: str = ""  # names the device, and says why no better one was chosen
    threads: int = 1  # of the CPU, as the user or the machine has them

    @property
    def place(self) -> str:
        """Return where it runs, what the device check found, and what degraded since."""
        return "; ".join(filter(None, (self.where, self.causal_lm.checked)))


def prefill(model: CausalModel, slot: CacheSlot, token_ids: Sequence[int]) -> None:
    """Append `token_ids` to the slot and commit them. No other step may be running."""
    start = 0
    while rows := piece_rows(len(token_ids) - start, model.most_read_rows):
        tree = TokenTree.chain(token_ids[start : start + rows])
        model.begin([StepInput(slot, tree, has_head=False)]).finish()
        slot.commit(range(rows))
        start += rows


def piece_rows(unread: int, most: int) -> int:
    """Return the size of a prompt's next piece: 128 times a power of two, or the short rest."""
    while most > MAX_ROWS and most > unread:
        most //= 2
    return min(most, unread)


def run_step(model: CausalModel, step: StepInput) -> StepOutput:
    """Run a step with a head without committing it. No other step may be running."""
    (output,) = model.begin([step]).finish()
    if output is None:
        raise ValueError("a step without a head has no output")
    return output


def check_room(steps: Sequence[StepInput], most_read_rows: int) -> None:
    """Raise ValueError if a step has too many rows for the model or for its slot."""
    for step in steps:
        length, capacity, rows = step.slot.length, step.slot.capacity, step.tree.num_rows
        most = MAX_ROWS if step.has_head else most_read_rows
        if rows > most:
            raise ValueError(f"a step takes {most} rows, not {rows}")
        if length + rows > capacity:
            raise ValueError(f"{length} + {rows} tokens exceed the slot's {capacity}")
