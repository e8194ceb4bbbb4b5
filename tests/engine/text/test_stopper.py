"""When a completion ends: every rule on small texts, fed as a decoder feeds it."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.config import StopRules
from engine.request import FinishReason
from engine.text.stopper import Stop, Stopper

PREFIX = "def total(xs):\n    result = 0\n    "
SUFFIX = "\n    return result\n"


def feed(stopper: Stopper, text: str) -> Stop | None:
    """Push word by word, as a tokenizer would cut it."""
    for token in re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text):
        stop = stopper.push(token)
        if stop is not None:
            return stop
    return None


def stop_of(text: str, prefix: str = PREFIX, suffix: str = SUFFIX, **rules) -> Stop | None:
    return feed(Stopper(StopRules(**rules), prefix, suffix), text)


LOOP = "for x in xs:\n        result += x"
STEPS = "    a = step()\n    b = back()\n"


@pytest.mark.parametrize(
    ("text", "reason", "kept"),
    [
        (f"{LOOP}\n    return result\n\ndef other():\n", FinishReason.SUFFIX, LOOP),
        (f"{LOOP}\n\nclass Other:\n", FinishReason.INDENTATION, LOOP),
        ("go()\n" + STEPS * 5, FinishReason.REPETITION, f"go()\n{STEPS}".rstrip()),
        ("x = 1\n\n\n\n\n", FinishReason.BLANK_LINES, "x = 1"),
        ("\n\n\n\n\n", FinishReason.BLANK_LINES, ""),
    ],
)
def test_each_rule_ends_the_text_where_it_is_whole(text, reason, kept):
    assert stop_of(text) == (reason, kept)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("\n    return result\n", {}),
        ("\n    return result;", {"strings": (";",)}),
        ("\n    return result", {"max_tokens": 2}),
    ],
)
def test_a_text_that_only_repeats_the_suffix_has_reached_it(text, rules):
    assert stop_of(text, **rules) == (FinishReason.SUFFIX, "")


def test_a_text_that_the_model_ends_with_the_suffix_has_reached_it():
    stopper = Stopper(StopRules(), PREFIX, SUFFIX)
    assert feed(stopper, "\n    return result") is None
    assert stopper.finish(FinishReason.END_TOKEN) == (FinishReason.SUFFIX, "")


def test_characters_written_again_and_again_stop():
    assert stop_of("x = [" + "0, " * 100).reason is FinishReason.REPETITION


@pytest.mark.parametrize(
    "text",
    [
        f"{LOOP}\n    print(result)\n",
        "a();\n#ifdef X\n    b();\n#endif\n",
        "pop()\n    pop()\n    pop()\n",
        "x = 1\n\n\n    y = 1\n",
    ],
    ids=["within the block", "preprocessor lines", "three equal lines", "two blank lines"],
)
def test_ordinary_code_is_not_stopped(text):
    assert stop_of(text) is None


def test_a_single_line_ends_at_its_end_without_the_rest_of_the_cursors_line():
    assert stop_of("x = 1\n    y = 2", single_line=True) == (FinishReason.LINE, "x = 1")
    stop = stop_of("value)\n", prefix="print(", suffix=")\n", single_line=True)
    assert stop == (FinishReason.LINE, "value")


def timed(*tokens: tuple[float, str]) -> list[Stop | None]:
    """What each token brings, pushed at its time with a limit of a second."""
    now = [0.0]
    stopper = Stopper(StopRules(time_limit_ms=1000), PREFIX, SUFFIX, clock=lambda: now[0])
    found = []
    for now[0], text in tokens:
        found.append(stopper.push(text))
    return found


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        # It waits for a line end.
        ([(0.0, "a = 1\n"), (1.5, "    b = 2"), (1.5, "\n")], "a = 1\n    b = 2\n"),
        # The text could be cut at an earlier line.
        ([(0.0, "a = 1\n"), (1.0, "    call(\n")], "a = 1\n    call(\n"),
        # A text that is only begun has half as much time again.
        (
            [(0.0, "for a in b:\n"), (1.2, "  c(\n"), (1.6, "  if a:\n")],
            "for a in b:\n  c(\n  if a:\n",
        ),
        ([(0.0, "call(\n"), (1.2, "  a,\n"), (1.6, "  b,\n")], "call(\n  a,\n  b,\n"),
        ([(0.0, "if (a) {\n"), (1.2, "  b();\n"), (1.6, "  c();\n")], "if (a) {\n  b();\n  c();\n"),
    ],
)
def test_the_time_limit_strikes_at_a_line_end(tokens, text):
    *former, last = timed(*tokens)
    assert former == [None] * len(former)
    assert last == (FinishReason.TIME, text)


def test_the_time_limit_counts_from_the_first_token_and_ends_nothing_that_is_blank():
    assert timed((9.0, "a = 1\n")) == [None]
    assert timed((0.0, ""), (19.0, "\n")) == [None, None]


def test_max_tokens_counts_tokens_without_text_too():
    stopper = Stopper(StopRules(max_tokens=3), PREFIX, SUFFIX)
    assert stopper.push("x") is None
    assert stopper.push("") is None
    assert stopper.push("é") == (FinishReason.MAX_TOKENS, "xé")


def test_rules_that_are_off_do_not_stop():
    text = "for x in xs:\n        result += x\n    return result\n" + "x = 1\n" * 9
    rules = StopRules(suffix=False, indentation=False, repetition=False)
    assert feed(Stopper(rules, PREFIX, SUFFIX), text) is None


def test_the_models_own_end_behind_the_suffixs_first_line_trims_it():
    stopper = Stopper(StopRules(), PREFIX, SUFFIX)
    assert feed(stopper, "result = sum(xs)\n    return result") is None
    assert stopper.finish(FinishReason.END_TOKEN).text == "result = sum(xs)"


@pytest.mark.parametrize(
    ("text", "kept"), [("pow = 1", "pow = 1"), ("power", "pow"), ("er", "er"), ("powers", "powers")]
)
def test_the_models_own_end_behind_the_cursors_word_trims_the_words_rest(text, kept):
    stopper = Stopper(StopRules(), "x = ", "er * n\n")
    feed(stopper, text)
    assert stopper.finish(FinishReason.END_TOKEN).text == kept


@pytest.mark.parametrize("reason", [FinishReason.CANCELLED, FinishReason.CONTEXT_FULL])
def test_an_end_in_mid_thought_trims_the_suffixs_line_too_but_no_word(reason):
    stopper = Stopper(StopRules(), PREFIX, SUFFIX)
    feed(stopper, "result = sum(xs)\n    return result")
    assert stopper.finish(reason).text == "result = sum(xs)"
    stopper = Stopper(StopRules(), "x = ", "er * n\n")
    feed(stopper, "power")
    assert stopper.finish(reason).text == "power"


def test_the_last_token_allowed_may_end_the_suffixs_line():
    words = "result = sum(xs)\n    return result"
    num_tokens = len(re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", words))
    assert stop_of(words, max_tokens=num_tokens) == (FinishReason.MAX_TOKENS, "result = sum(xs)")


WORDS = ["x", "return", " result", "}", ")", "", "urn", "else"]
LINES = ["    ", "\n", "\n\n", "    return result\n", "a = 1\n", "f() {\n"]
PIECES = st.sampled_from([*WORDS, *LINES])
SUFFIXES = st.lists(PIECES, max_size=5).map("".join)


ENDS = st.sampled_from([FinishReason.END_TOKEN, FinishReason.CANCELLED])


RULES = st.builds(
    StopRules,
    single_line=st.booleans(),
    max_tokens=st.integers(1, 40),
    min_confidence=st.sampled_from([0.0, 0.5]),
    min_line_confidence=st.sampled_from([0.3, 1.0]),
    min_later_confidence=st.sampled_from([0.3, 1.0]),
    strings=st.sampled_from([(), ("\n\n",), ("x}", "= 1\nx")]),
)
SURE, UNSURE = -0.001, -9.0  # of a token: forty sure ones do not make a text unsure
LOG_PROBS = st.sampled_from([SURE] * 20 + [-0.8, UNSURE])  # and one that only a whole line bears
TOKENS = st.lists(st.tuples(PIECES, LOG_PROBS), max_size=40)


def sure(*texts):
    return [(text, SURE) for text in texts]


@given(TOKENS, SUFFIXES, SUFFIXES, RULES, ENDS)
@example(sure("f():", "\n", "x", "x"), "x", "f():", StopRules(), FinishReason.END_TOKEN)
@example(sure(" result", "\n", "}", "\n", "    "), "", "", StopRules(), FinishReason.END_TOKEN)
@example(
    [*sure("a = 1\n", "return result\n", "}"), ("x", UNSURE)],
    "return result\n",
    "\nreturn result\nx",
    StopRules(min_confidence=0.5),
    FinishReason.END_TOKEN,
)
@settings(max_examples=100, deadline=None)
def test_what_was_streamed_is_never_taken_back(tokens, prefix, suffix, rules, end):
    stopper = Stopper(rules, prefix, suffix)
    streamed = ""
    for token, log_prob in tokens:
        stop = stopper.push(token, log_prob)
        if stop is not None:
            assert stop.text.startswith(streamed)
            return
        assert stopper.text.startswith(streamed)
        assert stopper.stable_len >= len(streamed)
        streamed = stopper.text[: stopper.stable_len]
    assert stopper.finish(end).text.startswith(streamed)


@given(st.lists(PIECES, max_size=30), SUFFIXES, SUFFIXES)
@settings(max_examples=100, deadline=None)
def test_the_text_is_what_was_written_up_to_a_cut(tokens, prefix, suffix):
    stopper = Stopper(StopRules(max_tokens=30), prefix, suffix)
    for token in tokens:
        stop = stopper.push(token)
        if stop is not None:
            written = "".join(tokens)
            assert written.startswith(stop.text.rstrip())
            return
    assert stopper.text == "".join(tokens)


MIN_INDENT = StopRules(min_indent=4, indentation=False)


def run(rules, tokens, suffix=""):
    """The text in the end, and what could be sent before each token."""
    stopper, sent = Stopper(rules, "x = (", suffix), list[str]()
    for token in tokens:
        if (stop := stopper.push(token)) is not None:
            return stop.text, stop.reason, sent
        sent.append(stopper.text[: stopper.stable_len])
    stop = stopper.finish(FinishReason.END_TOKEN)
    return stop.text, stop.reason, sent


@given(
    tokens=st.lists(st.text(alphabet="ab\n ", min_size=1, max_size=5), max_size=12),
    strings=st.lists(st.text(alphabet="ab\n", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_the_text_ends_before_the_first_one_however_it_is_cut_into_tokens(tokens, strings):
    whole = "".join(tokens)
    text, reason, sent = run(StopRules.verbatim(100, tuple(strings)), tokens)
    assert all(string not in text for string in strings)
    assert whole.startswith(text)
    assert (reason is FinishReason.STOP_STRING) == any(string in whole for string in strings)
    if reason is not FinishReason.STOP_STRING:
        assert text == whole
    assert all(text.startswith(one) for one in sent)


@pytest.mark.parametrize(
    ("rules", "tokens", "suffix", "text"),
    [
        (StopRules.verbatim(9, ("\n\nclass",)), ["a", "\n", "\ncl", "ass B"], "", "a"),
        # The rest of the cursor's line is not repeated before a string.
        (StopRules(strings=("\n",)), ["value", ")", "\n"], ")\n", "value"),
        # White space alone is a text to an API that wants all that is written.
        (StopRules.verbatim(9), [" ", "\n\n", "\n\n\n "], "", " \n\n\n\n\n "),
        # A line with less white space than asked for ends the text.
        (MIN_INDENT, ["a", "\n", "    b", "\n", "  c"], "", "a\n    b"),
        (MIN_INDENT, ["a", "\n", "\n", "    b\n", "c\n"], "", "a\n\n    b"),
    ],
)
def test_what_an_api_asks_for_ends_the_text(rules, tokens, suffix, text):
    assert run(rules, tokens, suffix)[0] == text


def test_the_beginning_of_a_string_is_held_back():
    assert run(StopRules.verbatim(9, ("\n\nclass",)), ["a", "\n", "\ncl"])[2] == ["a", "a", "a"]
