"""A text begins with what is sure, and goes on by lines that are likely as a whole."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import StopRules
from engine.growing_text import GrowingText
from engine.request import Chunk, CompletionRequest, FinishReason
from engine.text.stopper import Stop, Stopper

PREFIX, SUFFIX = "def total(xs):\n    ", "\n"
RULES = StopRules(min_confidence=0.5, min_line_confidence=0.3, min_later_confidence=0.4)


def pushed(
    *tokens: tuple[str, float], prefix: str = PREFIX, suffix: str = SUFFIX, rules: StopRules = RULES
) -> Stop | None:
    """What ends a text with the last of these tokens, each with its probability."""
    stopper = Stopper(rules, prefix, suffix)
    for text, probability in tokens[:-1]:
        assert stopper.push(text, math.log(probability)) is None
    return stopper.push(tokens[-1][0], math.log(tokens[-1][1]))


def stages(*tokens: tuple[str, float], prefix: str = PREFIX, suffix: str = SUFFIX) -> list[str]:
    """What is shown of a text, each time that there is more, and at the end."""
    shown, text = list[str](), ""

    def take(chunk: Chunk) -> None:
        nonlocal text
        text += chunk.text
        if chunk.is_sure:
            shown.append(text)

    growing = GrowingText(CompletionRequest(prefix, suffix, stop=RULES), take)
    for token, probability in tokens:
        if not growing.is_ended:
            growing.grow(token, math.log(probability))
        growing.send()
    assert growing.text.startswith(text)
    is_news = growing.is_ended and [growing.text] != shown[-1:]
    return [*shown, growing.text] if is_news else shown


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
    assert stages(*tokens, (" never", 1e-3))[-1] == text


@pytest.mark.parametrize("opened", ["(", "[", "{", '"', "([", "(f(a)["])
def test_nothing_is_left_open_that_the_text_opened(opened):
    tokens = ("return sum", 0.9), *((sign, 0.99) for sign in opened)
    assert pushed(*tokens, ("word", 0.3)).text == "return sum"


def test_what_was_open_before_the_cursor_may_stay_open():
    stop = pushed(("first", 0.9), (" second", 0.1), prefix="total(")
    assert stop == (FinishReason.UNSURE, "first")


@pytest.mark.parametrize("sign", [",", ";", ")", '"'])
def test_no_unsure_sign_is_added_where_the_text_has_nothing_open(sign):
    assert stages(("rows", 0.9), (sign, 0.5), (" never", 1e-3)) == ["rows"]


@pytest.mark.parametrize("begun", ["for row in", "if err", "x =", "throw", "a +", "while (a)"])
def test_a_statement_that_cannot_end_so_is_finished_if_that_is_likely_enough(begun):
    told = stages((begun, 0.9), (" rows", 0.5), (";", 0.97), ("\n", 0.97))
    assert told == [begun, f"{begun} rows;"]


GROWING = {
    "the first line is told at its end": (
        [("a = 1", 0.9), ("\n", 0.9), ("    b = 2", 0.9), ("\n", 0.9)],
        ["a = 1", "a = 1\n    b = 2"],
    ),
    "the sure beginning, then its line": (
        [("a = f(x", 0.9), (".y", 0.5), (")", 0.9), ("\n", 0.9), ("    b", 0.1)],
        ["a = f", "a = f(x.y)"],
    ),
    "nothing is sure, and the line is likely": (
        [("a", 0.4), (" = 1", 0.9), ("\n", 0.9), ("    b", 0.1)],
        ["a = 1"],
    ),
    "the line is not likely": (
        [("a = f", 0.9), ("(x", 0.5), (".y", 0.5)],
        ["a = f"],
    ),
    "each later line by its own probability": (
        [("a = 1\n", 0.6), ("    b = 2\n", 0.5), ("    c = 3\n", 0.5), ("    d", 0.35)],
        ["a = 1", "a = 1\n    b = 2", "a = 1\n    b = 2\n    c = 3"],
    ),
    "a line end is judged with the line behind it": (
        [("a = 1", 0.4), ("\n", 0.4), ("    b", 0.7)],
        ["a = 1"],
    ),
    "a line with open brackets goes on below": (
        [("a = f(\n", 0.4), ("        x,\n", 0.9), ("    )\n", 0.9), ("    b", 0.1)],
        ["a = f(\n        x,\n    )"],
    ),
    "a call that is unsure inside is told with its closer": (
        [("a = f(", 0.9), ("x", 0.5), (")", 0.9), (" +", 0.9), (" y", 0.1)],
        ["a = f", "a = f(x)"],
    ),
}


@pytest.mark.parametrize(("tokens", "told"), GROWING.values(), ids=GROWING)
def test_what_is_shown_grows_by_what_is_likely_as_a_whole(tokens, told):
    assert [one.rstrip() for one in stages(*tokens)] == told


def test_a_line_of_which_only_closers_are_unsure_is_finished():
    told = stages(("return f(a", 0.9), (")", 0.5), (";", 0.9), ("\n", 0.9))
    assert told == ["return f", "return f(a)", "return f(a);"]


def test_a_block_that_a_header_opens_is_finished_with_it():
    told = stages(("if (a)", 0.9), (" {", 0.5), ("\n", 0.98), ("  b();\n", 0.98), ("}\n", 0.98))
    assert told == ["if (a)", "if (a) {\n  b();\n}"]


def test_what_may_be_dropped_is_told_apart():
    told = list[Chunk]()
    growing = GrowingText(CompletionRequest(PREFIX, SUFFIX, stop=RULES), told.append)
    for token, probability in (("a = f", 0.9), ("(x", 0.5), (".y", 0.3)):
        growing.grow(token, math.log(probability))
        growing.send()
    assert told == [Chunk("a ="), Chunk(" f", is_sure=True, unsure="(x"), Chunk("")]


def test_what_the_text_behind_the_cursor_may_repeat_is_told_once_it_is_known_not_to():
    tokens = [("a = 1\n", 0.9), ("    return", 0.9), (" result\n", 0.9), ("    b = 2\n", 0.9)]
    told = stages(*tokens, suffix="\n    return result\n")
    assert told == ["a = 1"]


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
    assert pushed(("a\n", 1e-20), ("    b\n", 1e-20), rules=StopRules()) is None


LINES = ["    ", "\n", "\n\n", "    return result\n", "a = 1\n", "f() {\n", "}\n", "if x:\n", "("]
WORDS = ["x", "return", " result", "}", ")", "", "urn", "else", '"', " ="]
TOKENS = st.lists(
    st.tuples(st.sampled_from([*WORDS, *LINES]), st.sampled_from([1.0, 0.9, 0.6, 0.1])), max_size=30
)


@given(TOKENS, st.data(), st.lists(st.sampled_from(WORDS + LINES), max_size=4).map("".join))
@settings(max_examples=100, deadline=None)
def test_what_is_told_begins_the_text_however_the_tokens_come_together(tokens, data, suffix):
    told = list[Chunk]()
    growing = GrowingText(CompletionRequest("f(x):\n    ", suffix, stop=RULES), told.append)
    for token, probability in tokens:
        growing.grow(token, math.log(probability))
        if growing.is_ended:
            break
        if data.draw(st.booleans()):
            growing.send()
    growing.finish(data.draw(st.sampled_from([FinishReason.END_TOKEN, FinishReason.TIME])))
    assert "".join(chunk.text for chunk in told) == growing.text
    text = ""
    for chunk in told:
        text += chunk.text
        assert not chunk.is_sure or text == text.rstrip()


@given(TOKENS, st.data())
@settings(max_examples=100, deadline=None)
def test_the_text_is_the_same_however_the_tokens_come_together(tokens, data):
    texts = set()
    for sends in ([True] * len(tokens), [data.draw(st.booleans()) for _ in tokens]):
        growing = GrowingText(CompletionRequest(PREFIX, SUFFIX, stop=RULES), lambda _: None)
        for (token, probability), is_sent in zip(tokens, sends, strict=True):
            if not growing.is_ended:
                growing.grow(token, math.log(probability))
            if is_sent:
                growing.send()
        growing.finish(FinishReason.END_TOKEN)
        texts.add(growing.text)
    assert len(texts) == 1
