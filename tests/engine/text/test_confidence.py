"""A text ends before the word that makes it too improbable as a whole."""

import math

import pytest

from engine.config import StopRules
from engine.request import FinishReason
from engine.text.stopper import Stop, Stopper

PREFIX, SUFFIX = "def total(xs):\n    ", "\n"


def pushed(
    *tokens: tuple[str, float], prefix: str = PREFIX, suffix: str = SUFFIX, limit: float = 0.5
) -> Stop | None:
    """What ends a text with the last of these tokens, each with its probability."""
    stopper = Stopper(StopRules(min_confidence=limit), prefix, suffix)
    for text, probability in tokens[:-1]:
        assert stopper.push(text, math.log(probability)) is None
    return stopper.push(tokens[-1][0], math.log(tokens[-1][1]))


UNSURE = {
    "the product is too small": (
        [("return", 0.9), (" sum", 0.8), ("(", 0.9), ("xs", 0.7)],
        "return sum",
    ),
    "every token is likely and the text is not": ([(" x", 0.9)] * 7, " x" * 6),
    "the first token": ([("a", 0.4)], ""),
    "half a word is not left": ([(" = total", 0.9), ("_of", 0.9), ("_xs", 0.2)], " ="),
    "a word that another follows is whole": ([(" = total", 0.9), (".", 0.2)], " = total"),
    "no white space before the word": ([("a = 1\n", 0.9), ("    ", 0.9), ("b", 0.2)], "a = 1"),
    "a line end": ([("a = 1", 0.9), ("\n", 0.2)], "a = 1"),
    "inside a character is half a word": ([("a = caf", 0.9), ("", 0.2)], "a ="),
    "without blanks a character is a word": ([("# 売上を", 0.9), ("計", 0.2)], "# 売上を"),
    "a later line is not cut": ([("a = 1\n", 0.9), ("    b = sum", 0.9), ("(c", 0.2)], "a = 1"),
    "a later line is whole": (
        [("a = 1\n", 0.9), ("    b = 2", 0.9), ("\n", 0.2)],
        "a = 1\n    b = 2",
    ),
    "a line is not finished at any price": (
        [("return f(a", 0.9), (")", 0.5), (" +", 0.5)],
        "return f(a)",
    ),
    "nor is a header": ([("for row in", 0.9), (" rows", 0.4)], "for row in"),
    "a likely closer is sure with what it closes": (
        [("x = f(a", 0.9), (")", 0.5), (" if", 0.9), (" y", 0.5)],
        "x = f(a)",
    ),
}


@pytest.mark.parametrize(("tokens", "text"), UNSURE.values(), ids=UNSURE)
def test_the_text_ends_before_what_makes_it_too_improbable(tokens, text):
    assert pushed(*tokens) == (FinishReason.UNSURE, text)


@pytest.mark.parametrize("opened", ["(", "[", "{", '"', "([", "(f(a)["])
def test_nothing_is_left_open_that_the_text_opened(opened):
    tokens = ("return sum", 0.9), *((sign, 0.99) for sign in opened)
    assert pushed(*tokens, ("word", 0.3)).text == "return sum"


def test_what_was_open_before_the_cursor_may_stay_open():
    stop = pushed(("first", 0.9), (" second", 0.1), prefix="total(")
    assert stop == (FinishReason.UNSURE, "first")


@pytest.mark.parametrize("sign", [",", ";", ")", '"'])
def test_no_unsure_sign_is_added_where_the_text_has_nothing_open(sign):
    assert pushed(("rows", 0.9), (sign, 0.5)) == (FinishReason.UNSURE, "rows")


@pytest.mark.parametrize("begun", ["for row in", "if err", "x =", "throw", "a +", "while (a)"])
def test_a_statement_that_cannot_end_so_is_finished_if_that_is_likely_enough(begun):
    stop = pushed((begun, 0.9), (" rows", 0.5), (";", 0.97), ("\n", 0.97))
    assert stop == (FinishReason.LINE, f"{begun} rows;")


def test_a_line_of_which_only_closers_are_unsure_is_finished():
    stop = pushed(("return f(a", 0.9), (")", 0.5), (";", 0.9), ("\n", 0.9))
    assert stop == (FinishReason.LINE, "return f(a);")


def test_a_block_that_a_header_opens_is_finished_with_it():
    stop = pushed(("if (a)", 0.9), (" {", 0.5), ("\n", 0.98), ("  b();\n", 0.98), ("}\n", 0.98))
    assert stop == (FinishReason.LINE, "if (a) {\n  b();\n}")


def test_what_stays_above_the_limit_goes_on():
    assert pushed(("a", 0.8), (" = 1\n", 0.8)) is None


def test_a_last_line_that_repeats_the_text_behind_the_cursor_goes_as_at_any_end():
    tokens = [(text, 0.99) for text in ("a)", "\n", "return result")]
    stop = pushed(*tokens, ("\n", 1e-4), prefix="f(", suffix=")\nreturn result\n")
    assert stop == (FinishReason.UNSURE, "a")


def test_only_whole_words_are_streamed():
    stopper = Stopper(StopRules(min_confidence=0.5), PREFIX, SUFFIX)
    for text, is_final in (("a = total", "a ="), ("(", "a = total")):
        stopper.push(text, math.log(0.9))
        assert stopper.stable_len == len(is_final)


def test_without_a_limit_no_probability_matters():
    assert pushed(("a\n", 1e-20), ("    b\n", 1e-20), limit=0.0) is None
