"""Lines that the model hardly preferred: from the second one on they end the text."""

import pytest

from engine.config import StopRules
from engine.request import FinishReason
from engine.stopping import Stopper

PREFIX, SUFFIX = "def total(xs):\n    ", "\n"


def stopper(**rules) -> Stopper:
    return Stopper(StopRules(min_margin=2.0, **rules), PREFIX, SUFFIX)


def test_a_second_line_that_is_not_sure_ends_the_text_before_it():
    one = stopper()
    assert one.push("a = 1", 5.0) is None
    assert one.push("\n", 5.0) is None
    assert one.push("    b =", 1.0) is None
    assert one.push(" 2", 2.5) is None
    stop = one.push("\n", 2.0)
    assert stop is not None
    assert (stop.reason, stop.text) == (FinishReason.UNSURE, "a = 1")


def test_the_first_line_may_be_as_unsure_as_it_likes():
    one = stopper()
    for token in ("a", " =", " 1", "\n"):
        assert one.push(token, 0.1) is None


def test_lines_that_are_sure_go_on():
    one = stopper()
    for token in ("a\n", "    b\n", "    c\n"):
        assert one.push(token, 2.0) is None
    assert one.finish(FinishReason.END_TOKEN).text == "a\n    b\n    c\n"


def test_a_last_line_without_an_end_is_judged_as_well():
    one = stopper()
    assert one.push("a\n", 9.0) is None
    assert one.push("    b", 0.5) is None
    assert one.finish(FinishReason.END_TOKEN).text == "a"


def test_blank_lines_are_nobodys_fault():
    one = stopper()
    assert one.push("a\n", 9.0) is None
    assert one.push("\n", 0.5) is None
    assert one.push("    b\n", 9.0) is None


def test_only_the_lines_that_were_judged_are_streamed():
    one = stopper()
    one.push("a\n", 9.0)
    assert one.stable_len == 1
    one.push("    b", 9.0)
    assert one.stable_len == 1
    one.push("\n", 9.0)
    assert one.stable_len == len("a\n    b")


@pytest.mark.parametrize("margin", [0.0, 9.0])
def test_without_a_limit_no_margin_matters(margin):
    one = Stopper(StopRules(), PREFIX, SUFFIX)
    assert one.push("a\n", margin) is None
    assert one.push("    b\n", margin) is None
