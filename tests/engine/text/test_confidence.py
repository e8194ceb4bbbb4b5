"""A text ends before the word that makes it too improbable as a whole."""

import math

import pytest

from engine.config import StopRules
from engine.errors import ConfigurationError
from engine.request import FinishReason
from engine.text import Stopper

PREFIX, SUFFIX = "def total(xs):\n    ", "\n"


def stopper(**rules) -> Stopper:
    return Stopper(StopRules(min_confidence=0.5, **rules), PREFIX, SUFFIX)


def pushed(*tokens: tuple[str, float]):
    """What ends a text of these tokens, each with its probability."""
    one = stopper()
    for text, probability in tokens[:-1]:
        assert one.push(text, math.log(probability)) is None
    return one.push(tokens[-1][0], math.log(tokens[-1][1]))


def test_the_text_ends_before_the_token_that_takes_the_product_below_the_limit():
    stop = pushed(("return", 0.9), (" sum", 0.8), ("(", 0.9), ("xs", 0.7))
    assert stop == (FinishReason.UNSURE, "return sum")


@pytest.mark.parametrize("opened", ["(", "[", "{", '"', "([", "(f(a)["])
def test_nothing_is_left_open_that_the_text_opened(opened):
    tokens = ("return sum", 0.9), *((sign, 0.99) for sign in opened)
    assert pushed(*tokens, ("word", 0.3)).text == "return sum"


def test_what_was_open_before_the_cursor_may_stay_open():
    one = Stopper(StopRules(min_confidence=0.5), "total(", "\n")
    assert one.push("first", math.log(0.9)) is None
    assert one.push(" second", math.log(0.1)) == (FinishReason.UNSURE, "first")


def test_a_line_of_which_only_closers_are_unsure_is_finished():
    one = stopper()
    for text, probability in (("return f(a", 0.9), (")", 0.5), (";", 0.9)):
        assert one.push(text, math.log(probability)) is None
    assert one.push("\n", math.log(0.9)) == (FinishReason.LINE, "return f(a);")


@pytest.mark.parametrize("sign", [",", ";", ")", '"'])
def test_no_unsure_sign_is_added_where_the_text_has_nothing_open(sign):
    assert pushed(("rows", 0.9), (sign, 0.5)) == (FinishReason.UNSURE, "rows")


def test_a_line_is_not_finished_at_any_price():
    stop = pushed(("return f(a", 0.9), (")", 0.5), (" +", 0.5))
    assert stop == (FinishReason.UNSURE, "return f(a)")
    assert pushed(("for row in", 0.9), (" rows", 0.4)) == (FinishReason.UNSURE, "for row in")


def test_a_closer_that_is_likely_enough_is_sure_with_what_it_closes():
    stop = pushed(("x = f(a", 0.9), (")", 0.5), (" if", 0.9), (" y", 0.5))
    assert stop == (FinishReason.UNSURE, "x = f(a)")


@pytest.mark.parametrize("begun", ["for row in", "if err", "x =", "throw", "a +", "while (a)"])
def test_a_statement_that_cannot_end_so_is_finished_if_that_is_likely_enough(begun):
    one = stopper()
    assert one.push(begun, math.log(0.9)) is None
    assert one.push(" rows", math.log(0.5)) is None
    assert one.push(";", math.log(0.97)) is None
    assert one.push("\n", math.log(0.97)) == (FinishReason.LINE, f"{begun} rows;")


def test_a_block_that_a_header_opens_is_finished_with_it():
    one = stopper()
    for text, probability in (("if (a)", 0.9), (" {", 0.5), ("\n", 0.98), ("  b();\n", 0.98)):
        assert one.push(text, math.log(probability)) is None
    assert one.push("}\n", math.log(0.98)) == (FinishReason.LINE, "if (a) {\n  b();\n}")


def test_a_later_line_is_whole_or_not_there():
    first = ("a = 1\n", 0.9)
    assert pushed(first, ("    b = sum", 0.9), ("(c", 0.2)).text == "a = 1"
    assert pushed(first, ("    b = 2", 0.9), ("\n", 0.2)).text == "a = 1\n    b = 2"


def test_every_token_may_be_likely_and_the_text_as_a_whole_not():
    stop = pushed(*[(" x", 0.9)] * 7)
    assert stop == (FinishReason.UNSURE, " x" * 6)


def test_half_a_word_is_not_left_behind():
    assert pushed((" = total", 0.9), ("_of", 0.9), ("_xs", 0.2)).text == " ="


def test_a_word_that_another_follows_is_whole():
    assert pushed((" = total", 0.9), (".", 0.2)).text == " = total"


def test_the_white_space_before_an_unsure_word_is_not_shown():
    assert pushed(("a = 1\n", 0.9), ("    ", 0.9), ("b", 0.2)).text == "a = 1"


def test_an_unsure_line_end_ends_the_text_before_it():
    assert pushed(("a = 1", 0.9), ("\n", 0.2)).text == "a = 1"


def test_a_text_that_begins_unsure_is_empty():
    assert pushed(("a", 0.4)) == (FinishReason.UNSURE, "")


def test_what_stays_above_the_limit_goes_on():
    assert pushed(("a", 0.8), (" = 1\n", 0.8)) is None


def test_a_word_that_ends_inside_a_character_is_half_a_word():
    assert pushed(("a = caf", 0.9), ("", 0.2)).text == "a ="


def test_in_a_script_without_blanks_each_character_stands_alone():
    assert pushed(("# 売上を", 0.9), ("計", 0.2)).text == "# 売上を"


def test_a_last_line_that_repeats_the_text_behind_the_cursor_goes_as_at_any_end():
    one = Stopper(StopRules(min_confidence=0.5), "f(", ")\nreturn result\n")
    for token in ("a)", "\n", "return result"):
        assert one.push(token, -0.01) is None
    stop = one.push("\n", -9.0)
    assert (stop.reason, stop.text) == (FinishReason.UNSURE, "a")


def test_only_whole_words_are_streamed():
    one = stopper()
    one.push("a = total", math.log(0.9))
    assert one.stable_len == len("a =")
    one.push("(", math.log(0.9))
    assert one.stable_len == len("a = total")


@pytest.mark.parametrize("log_prob", [0.0, -50.0])
def test_without_a_limit_no_probability_matters(log_prob):
    one = Stopper(StopRules(), PREFIX, SUFFIX)
    assert one.push("a\n", log_prob) is None
    assert one.push("    b\n", log_prob) is None


@pytest.mark.parametrize("limit", [-0.1, 1.1, math.nan])
def test_a_limit_is_a_probability(limit):
    with pytest.raises(ConfigurationError, match="within 0 and 1"):
        StopRules(min_confidence=limit)
