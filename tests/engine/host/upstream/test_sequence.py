"""An answer has to begin with what the cursor cut off, and ends at a special token."""

import pytest

from engine.config import StopRules
from engine.growing_text import GrowingText
from engine.host.upstream.sequence import RepeatMissedError, UpstreamAnswer
from engine.host.upstream.wire import Delta
from engine.request import FinishReason, TokenText
from engine.text.stopper import Stopper


def taken(*deltas, owed="", ends=()):
    """An answer of these pieces of text, or deltas, and what was told of it."""
    chunks = []
    text = GrowingText(Stopper(StopRules(), "x = ", ""), lambda chunk: chunks.append(chunk.text))
    answer = UpstreamAnswer(text, owed, ends)
    for one in deltas:
        answer.take(Delta((TokenText(one, -0.5),), 1) if isinstance(one, str) else one)
    return answer, "".join(chunks)


END = Delta(finish_reason="stop")


@pytest.mark.parametrize(
    "pieces", [("self", ".a"), ("sel", "f.a"), ("s", "e", "l", "f", ".a"), ("self.a",)]
)
def test_what_is_owed_is_taken_off_however_it_is_cut(pieces):
    answer, told = taken(*pieces, END, owed="sel")
    assert (answer.text.text, told) == ("f.a", "f.a")
    assert len(answer.text.log_probs) == len(pieces)


@pytest.mark.parametrize("pieces", [("x",), ("se", "x"), (" sel",), ("s", "x")])
def test_nothing_is_shown_of_an_answer_that_does_not_repeat_what_is_owed(pieces):
    with pytest.raises(RepeatMissedError):
        taken(*pieces, owed="sel")


def test_an_answer_that_ends_before_it_has_repeated_it_misses_it():
    with pytest.raises(RepeatMissedError):
        taken("se", END, owed="sel")
    with pytest.raises(RepeatMissedError):
        taken("se<|fim_pad|>", owed="sel", ends=["<|fim_pad|>"])


def test_a_special_token_ends_it_wherever_it_stands():
    answer, told = taken("a", " + b<|fim_pad|>junk", ends=["<|fim_pad|>"])
    assert (answer.text.text, told) == ("a + b", "a + b")
    assert answer.text.finish_reason is FinishReason.FIM_TOKEN


def test_what_stands_behind_the_end_in_one_event_is_left():
    delta = Delta(tuple(TokenText(word, -0.1) for word in ("a", "<|x|>", "b")), 3)
    answer, _ = taken(delta, ends=["<|x|>"])
    assert answer.text.text == "a"
