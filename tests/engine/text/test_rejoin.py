"""An answer that has changed a text and repeats it again ends with the rest of the text."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import StopRules
from engine.request import FinishReason
from engine.text.stopper import Stopper

OLD = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\ng = 7"
RULES = msgspec.structs.replace(StopRules.verbatim(99), rejoins=True)


def ended(answer, old=OLD, rules=RULES):
    """Feed an answer by characters; return the Stop, and how many were read."""
    stopper = Stopper(rules, "", "", copied=old)
    for number, character in enumerate(answer):
        if stop := stopper.push(character):
            return stop, number + 1
    return None, len(answer)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("a = 1\nb = 9\nc = 3\nd = 4\ne = 5\n", id="a line is replaced"),
        pytest.param("a = 1\nnew\nb = 2\nc = 3\nd = 4\n", id="a line is inserted"),
        pytest.param("a = 1\nc = 3\nd = 4\ne = 5\n", id="a line is deleted"),
    ],
)
def test_three_old_lines_behind_a_change_end_it(answer):
    stop, num_read = ended(answer + "f = 8\n")
    assert num_read == len(answer)
    rest = OLD[OLD.index(answer.splitlines()[-1]) + len("a = 1\n") :]
    assert stop == (FinishReason.REJOINED, answer + rest)


@pytest.mark.parametrize(
    ("answer", "old"),
    [
        pytest.param(OLD, OLD, id="nothing changes"),
        pytest.param("x\na = 1\nb = 2\n", OLD, id="two lines"),
        pytest.param("x\n\n\n\n", "y\n\n\n\nz", id="blank lines"),
        pytest.param("x\na\na\na\n", "y\na\na\na\na\nz", id="lines that stand twice"),
        pytest.param("let b\n1\n2\n3\n", "let a\n1\n2\n3\nuse(a)", id="a renamed word comes again"),
        pytest.param("x\n1\n2\n3\n", "y\n1\n2\n3\n", id="no rest"),
        pytest.param("b = 2\nc = 3\nd = 4\ne = 5\n", OLD, id="it begins in the middle"),
    ],
)
def test_an_answer_goes_on_while_more_may_change(answer, old):
    assert ended(answer, old)[0] is None


def test_only_an_answer_that_is_to_rejoin_ends_so():
    assert ended("x\nb = 2\nc = 3\nd = 4\n", rules=StopRules.verbatim(99))[0] is None


@given(st.lists(st.sampled_from("abcde"), max_size=9), st.lists(st.sampled_from("abcde")))
def test_what_was_written_stays_and_the_end_is_old_text(old, new):
    answer = "".join(f"{line}\n" for line in new)
    stop, num_read = ended(answer, "\n".join(old))
    if stop is not None and stop.reason is FinishReason.REJOINED:
        assert stop.text.startswith(answer[:num_read])
        assert "\n".join(old).endswith(stop.text[num_read:])
