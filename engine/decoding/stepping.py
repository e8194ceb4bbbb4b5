"""Steps of any slot. What a slot leaves to the host, the choice and the walk, is done here."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.model.causal_lm import CacheSlot, SteppingSlot
from engine.model.sampling import choose
from engine.model.step_order import NUM_TOP, StepAnswer, StepOrder, Stepper
from engine.model.top_tokens import margins, top_tokens
from engine.model.verify import verify


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """A `StepAnswer` from `logits` float32 [rows, vocab]."""

    chosen: np.ndarray
    rows: np.ndarray
    ms: float
    logits: torch.Tensor

    @property
    def step_rows(self) -> int:
        """Its own alone."""
        return self.logits.shape[0]

    def margins_of(self, rows: np.ndarray) -> np.ndarray:
        """The largest logit of these rows less the next largest."""
        return margins(self.logits[torch.from_numpy(rows)])

    def top_tokens(self) -> np.ndarray:
        """Ids of the largest logits of each row."""
        return top_tokens(self.logits, NUM_TOP)


@dataclass(slots=True)
class _OverSlot:
    """What all steppers have: a slot, and the step that was asked for."""

    slot: CacheSlot
    _order: StepOrder | None = field(default=None, init=False)

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self.slot.length

    @property
    def capacity(self) -> int:
        """Tokens that fit, committed and in flight."""
        return self.slot.capacity

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the finished step."""
        self.slot.commit(rows)

    def _take_order(self) -> StepOrder:
        if self._order is None:
            raise ValueError("no step was begun")
        order, self._order = self._order, None
        return order


@dataclass(slots=True)
class HostStepper(_OverSlot):
    """A `Stepper` over any slot. The model runs in `finish`: nothing goes on beside it."""

    def begin(self, order: StepOrder) -> None:
        """Remember what is to be done."""
        self._order = order

    def finish(self) -> StepAnswer:
        """Run the model, choose, and walk the path that agrees. Raises ValueError before `begin`."""
        order = self._take_order()
        began = time.perf_counter()
        tree = order.tree
        logits = self.slot.step(tree)
        positions = self.slot.length + 1 + tree.depths
        chosen = choose(logits, positions, order.sampling, order.allowed)
        rows = verify(tree.token_ids, tree.parents, chosen).rows
        return HostAnswer(chosen, rows, 1000 * (time.perf_counter() - began), logits)

    def abandon(self) -> None:
        """Forget what was to be done."""
        self._order = None


@dataclass(frozen=True, slots=True)
class MendedAnswer:
    """A `StepAnswer` of which the host chose some rows."""

    chosen: np.ndarray
    rows: np.ndarray
    told: StepAnswer

    @property
    def ms(self) -> float:
        """What the step took."""
        return self.told.ms

    @property
    def step_rows(self) -> int:
        """Rows that it took so long for."""
        return self.told.step_rows

    def margins_of(self, rows: np.ndarray) -> np.ndarray:
        """How far the best score of these rows led."""
        return self.told.margins_of(rows)

    def top_tokens(self) -> np.ndarray:
        """Likely ids after each row."""
        return self.told.top_tokens()


@dataclass(slots=True)
class DeviceStepper(_OverSlot):
    """A `Stepper` over a slot that chooses by itself, save where more than scores decide."""

    slot: SteppingSlot

    def begin(self, order: StepOrder) -> None:
        """Start the step, as soon as the device takes it."""
        self._order = order
        self.slot.begin(order)

    def finish(self) -> StepAnswer:
        """Wait for the step. Raises ValueError before `begin`."""
        order = self._take_order()
        answer = self.slot.finish()
        rows = order.logits_rows
        if not len(rows):
            return answer
        allowed = None if order.allowed is None else [order.allowed[row] for row in rows]
        positions = (self.slot.length + 1 + order.tree.depths)[rows]
        chosen = answer.chosen.copy()
        chosen[rows] = choose(answer.logits, positions, order.sampling, allowed)
        path = verify(order.tree.token_ids, order.tree.parents, chosen).rows
        return MendedAnswer(chosen, path, answer)

    def abandon(self) -> None:
        """Forget the step that was begun."""
        self._order = None
        self.slot.abandon()


def stepper_of(slot: CacheSlot) -> Stepper:
    """Let a slot's steps be begun and finished."""
    return DeviceStepper(slot) if isinstance(slot, SteppingSlot) else HostStepper(slot)
