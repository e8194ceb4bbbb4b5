"""The one interface between decoding and any causal language model: a token tree over a KV cache."""

from collections.abc import Sequence
from typing import Protocol, Self, runtime_checkable

import torch

from engine.model.step_order import ScoredAnswer, StepOrder
from engine.model.token_tree import TokenTree


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
