"""A sequence reads its prompt, decodes, and gives back what it holds, whatever ends it."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.completion import Completion, TextStream
from engine.config import StopRules
from engine.growing_text import GrowingText
from engine.model.prompt import Prompt
from engine.prompt_cache import PromptCache
from engine.request import FinishReason
from engine.sequence import Sequence
from engine.stopping import Stopper

IDS = tuple(range(300))


class Slot:
    """Holds as many tokens as are committed."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.length = capacity, 0

    num_bytes = 1

    def commit(self, rows):
        self.length += len(rows)

    def truncate(self, length):
        self.length = length


@pytest.fixture
def cache():
    model: Any = SimpleNamespace(new_slot=Slot, most_read_rows=128)  # all that it asks for
    return PromptCache(model, 1000)


class Watched:
    """A sequence, the leases that it was refused, and how often its end was heard of."""

    def __init__(self, cache, *, num_refused=0, decoding=None) -> None:
        self.is_cancelled, self.ends, self.refused = False, 0, num_refused
        stopper, model = Stopper(StopRules(), "", ""), cast(Any, None)  # it writes nothing
        completion = Completion(model, GrowingText(stopper, lambda _: None), TextStream(0))

        def lease():
            if self.refused:
                self.refused -= 1
                return None
            return cache.lease("key", IDS[:-1], 10)

        def ended(_):
            self.ends += 1

        self.sequence = Sequence(
            prompt=Prompt(IDS, b"", b"", (1,)),
            completion=completion,
            lease=lease,
            decoding=decoding,
            is_cancelled=lambda: self.is_cancelled,
            on_end=ended,
        )

    def step(self):
        """One round of the loop; the rows that it read, or None."""
        step = self.sequence.next_step()
        self.sequence.settle()
        if step is not None:
            self.sequence.take(None)
        return step.tree.num_rows if step else None


def test_a_prompt_is_read_in_pieces_without_a_head_and_stays_in_the_cache(cache):
    one = Watched(cache)
    assert [one.step() for _ in range(4)] == [128, 128, 43, None]
    assert (one.sequence.is_done, one.ends) == (True, 1)
    assert cache.lease("key", IDS, 10).reused == 299


def test_it_waits_for_a_slot_and_may_be_cancelled_meanwhile(cache):
    patient, impatient = Watched(cache, num_refused=3), Watched(cache, num_refused=3)
    assert [patient.step() for _ in range(4)] == [None, None, None, 128]
    impatient.step()
    impatient.is_cancelled = True
    impatient.step()
    assert impatient.sequence.result().finish_reason is FinishReason.CANCELLED
    assert not patient.sequence.is_done


def test_a_cancel_keeps_the_pieces_that_were_read(cache):
    one = Watched(cache)
    one.step()
    one.is_cancelled = True
    one.step()
    assert one.sequence.is_done
    assert cache.lease("key", IDS, 10).reused == 128


def test_an_error_ends_it_once_and_its_slot_is_built_on_by_nobody(cache):
    one = Watched(cache, decoding=lambda _lease: 1 / 0)
    assert [one.step() for _ in range(4)] == [128, 128, 43, None]
    assert one.ends == 1
    with pytest.raises(ZeroDivisionError):
        one.sequence.result()
    assert cache.lease("key", IDS, 10).reused == 0


def test_a_forward_that_fails_ends_it_and_what_holds_its_slot_is_closed(cache):
    closed = []

    @contextmanager
    def decoding(_lease):
        try:
            yield SimpleNamespace(next_step=lambda: None, settle=lambda: None, is_done=False)
        finally:
            closed.append(True)

    one = Watched(cache, decoding=decoding)
    for _ in range(4):
        one.step()
    one.sequence.fail(RuntimeError("the device is gone"))
    assert (closed, one.ends) == ([True], 1)
    one.sequence.close()
    assert one.ends == 1
