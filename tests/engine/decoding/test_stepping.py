"""Any slot can begin and finish steps; what a slot does not choose, the host does."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from engine.config import Sampling
from engine.decoding.stepping import DeviceStepper, HostStepper, stepper_of
from engine.model.gpu.step_queue import GpuAnswer
from engine.model.sampling import choose
from engine.model.step_order import NUM_TOP, StepOrder
from engine.model.token_tree import TokenTree
from engine.model.verify import verify

TREE = TokenTree(np.array([5, 1, 2, 3]), np.array([-1, 0, 0, 1], np.int32))
VOCAB = 20


@dataclass
class LogitsSlot:
    """Says fixed logits."""

    length: int = 7
    capacity: int = 300
    num_bytes: int = 0
    kept: list[int] = field(default_factory=list)
    logits: torch.Tensor = field(default_factory=lambda: torch.randn(4, VOCAB))

    def copy_from(self, other, length): ...

    def truncate(self, length): ...

    def prefill(self, token_ids): ...

    def step(self, tree):
        return self.logits[: tree.num_rows]

    def commit(self, rows):
        self.kept = list(rows)


@dataclass
class ChoosingSlot(LogitsSlot):
    """Chooses by the largest logit, as a GPU does."""

    is_begun: bool = False

    def begin(self, order):
        self.is_begun, self.order = True, order

    def finish(self):
        self.is_begun = False
        chosen = self.logits.argmax(dim=1).numpy()
        rows = verify(TREE.token_ids, TREE.parents, chosen).rows
        top = np.tile(chosen[:, None], NUM_TOP)
        logits = self.logits[self.order.logits_rows]
        return GpuAnswer(chosen, rows, np.arange(4), np.ones(4), logits, 2.0, 9, top)

    def abandon(self):
        self.is_begun = False


@pytest.mark.parametrize("slot_type", [LogitsSlot, ChoosingSlot])
@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0.8, top_k=3, seed=2)], ids=["greedy", "nucleus"]
)
def test_the_answer_is_what_the_logits_say(slot_type, sampling):
    slot = slot_type()
    stepper = stepper_of(slot)
    stepper.begin(StepOrder(TREE, sampling))
    answer = stepper.finish()
    expected = choose(slot.logits, 8 + TREE.depths, sampling)
    assert answer.chosen.tolist() == expected.tolist()
    assert answer.rows.tolist() == verify(TREE.token_ids, TREE.parents, expected).rows.tolist()
    assert answer.top_tokens().shape == (4, NUM_TOP)
    assert answer.ms > 0
    stepper.commit(answer.rows.tolist())
    assert slot.kept == answer.rows.tolist()


@pytest.mark.parametrize("slot_type", [LogitsSlot, ChoosingSlot])
def test_rows_with_a_constraint_keep_to_it(slot_type):
    slot = slot_type()
    stepper = stepper_of(slot)
    stepper.begin(StepOrder(TREE, Sampling(), [np.array([3, 4]), None, None, np.array([0])]))
    answer = stepper.finish()
    assert answer.chosen[0] == (3 if slot.logits[0, 3] >= slot.logits[0, 4] else 4)
    assert answer.chosen[3] == 0
    assert answer.chosen[1:3].tolist() == slot.logits[1:3].argmax(dim=1).tolist()


def test_a_slot_that_chooses_is_told_of_the_step_at_once_and_can_forget_it():
    slot = ChoosingSlot()
    stepper = stepper_of(slot)
    stepper.begin(StepOrder(TREE, Sampling()))
    assert slot.is_begun
    stepper.abandon()
    assert not slot.is_begun


@pytest.mark.parametrize("stepper", [HostStepper(LogitsSlot()), DeviceStepper(ChoosingSlot())])
def test_nothing_is_finished_that_was_not_begun(stepper):
    with pytest.raises(ValueError, match="no step was begun"):
        stepper.finish()
    stepper.begin(StepOrder(TREE, Sampling()))
    stepper.abandon()
    with pytest.raises(ValueError, match="no step was begun"):
        stepper.finish()


def test_a_step_knows_for_how_many_rows_it_took_so_long():
    host, device = stepper_of(LogitsSlot()), stepper_of(ChoosingSlot())
    for stepper, rows in ((host, 4), (device, 9)):
        stepper.begin(StepOrder(TREE, Sampling()))
        assert stepper.finish().step_rows == rows
