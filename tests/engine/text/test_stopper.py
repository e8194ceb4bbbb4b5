"""When a completion ends: every rule on small texts, fed as a decoder feeds it."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.config import StopRules
from engine.errors import ConfigurationError
from engine.request import FinishReason
from engine.text import Stop, Stopper

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


def test_text_that_goes_on_within_the_block_is_not_stopped():
    assert stop_of("for x in xs:\n        result += x\n    print(result)\n") is None


def test_reaching_the_suffix_stops_and_trims_it():
    stop = stop_of("for x in xs:\n        result += x\n    return result\n\ndef other():\n")
    assert stop == (FinishReason.SUFFIX, "for x in xs:\n        result += x")


def test_leaving_the_block_stops_before_the_line_that_leaves_it():
    stop = stop_of("for x in xs:\n        result += x\n\nclass Other:\n", suffix="\n    return 1\n")
    assert stop == (FinishReason.INDENTATION, "for x in xs:\n        result += x")


def test_a_comment_or_preprocessor_line_may_stand_at_the_margin():
    assert stop_of("a();\n#ifdef X\n    b();\n#endif\n", suffix="\n    c();\n") is None


def test_lines_written_again_and_again_stop_after_the_first_copy():
    stop = stop_of("go()\n" + "    a = step()\n    b = back()\n" * 5)
    assert stop == (FinishReason.REPETITION, "go()\n    a = step()\n    b = back()")


def test_characters_written_again_and_again_stop():
    stop = stop_of("x = [" + "0, " * 100)
    assert stop is not None
    assert stop.reason is FinishReason.REPETITION


def test_three_equal_lines_are_ordinary_code():
    assert stop_of("pop()\n    pop()\n    pop()\n") is None


def test_too_many_blank_lines_stop_and_are_dropped():
    assert stop_of("x = 1\n\n\n\n\n") == (FinishReason.BLANK_LINES, "x = 1")
    assert stop_of("x = 1\n\n\n    y = 1\n") is None


def test_nothing_but_blank_lines_becomes_an_empty_completion():
    assert stop_of("\n\n\n\n\n", suffix="") == (FinishReason.BLANK_LINES, "")


def test_a_single_line_ends_at_its_end():
    assert stop_of("x = 1\n    y = 2", single_line=True) == (FinishReason.LINE, "x = 1")


def test_a_single_line_drops_the_rest_of_the_cursors_line():
    stop = stop_of("value)\n", prefix="print(", suffix=")\n", single_line=True)
    assert stop == (FinishReason.LINE, "value")


def test_the_time_limit_waits_for_a_line_end():
    now = [0.0]
    stopper = Stopper(StopRules(time_limit_s=1.0), PREFIX, SUFFIX, clock=lambda: now[0])
    assert feed(stopper, "a = 1\n") is None
    now[0] = 1.5
    assert feed(stopper, "    b = 2") is None
    assert stopper.push("\n") == (FinishReason.TIME, "a = 1\n    b = 2\n")


@pytest.mark.parametrize("opened", ["for a in b:\n", "call(\n", "if (a) {\n"])
def test_the_time_limit_gives_a_text_that_is_only_begun_half_as_much_time_again(opened):
    now = [0.0]
    stopper = Stopper(StopRules(time_limit_s=1.0), PREFIX, SUFFIX, clock=lambda: now[0])
    assert stopper.push("        ") is None
    now[0] = 1.2
    assert stopper.push(opened) is None
    now[0] = 1.6
    stop = stopper.push("            go()\n            if there:\n")
    assert stop is not None
    assert stop.reason is FinishReason.TIME


def test_the_time_limit_holds_where_the_text_could_be_cut_at_an_earlier_line():
    now = [0.0]
    stopper = Stopper(StopRules(time_limit_s=1.0), PREFIX, SUFFIX, clock=lambda: now[0])
    assert stopper.push("        a = 1\n") is None
    now[0] = 1.0
    stop = stopper.push("        call(\n")
    assert stop is not None
    assert stop.reason is FinishReason.TIME


def test_the_time_limit_counts_from_the_first_token_and_ends_nothing_that_is_blank():
    now = [0.0]
    stopper = Stopper(StopRules(time_limit_s=1.0), PREFIX, SUFFIX, clock=lambda: now[0])
    now[0] = 9.0
    assert feed(stopper, "a = 1\n") is None
    stopper = Stopper(StopRules(time_limit_s=1.0), PREFIX, SUFFIX, clock=lambda: now[0])
    assert stopper.push("") is None
    now[0] = 19.0
    assert feed(stopper, "\n") is None


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


PIECES = st.sampled_from(
    [
        "x",
        "    ",
        "\n",
        "\n\n",
        "return",
        " result",
        "    return result\n",
        "}",
        ")",
        "a = 1\n",
        "",
        "urn",
        "f() {\n",
        "else",
    ]
)
SUFFIXES = st.lists(PIECES, max_size=5).map("".join)


ENDS = st.sampled_from([FinishReason.END_TOKEN, FinishReason.CANCELLED])


RULES = st.builds(
    StopRules,
    single_line=st.booleans(),
    max_tokens=st.integers(1, 40),
    min_confidence=st.sampled_from([0.0, 0.5]),
)
SURE, UNSURE = -0.001, -9.0  # of a token: forty sure ones do not make a text unsure
LOG_PROBS = st.sampled_from([SURE] * 20 + [UNSURE])
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
@settings(max_examples=400, deadline=None)
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


@given(
    tokens=st.lists(st.text(alphabet="ab\n )", min_size=1, max_size=5), max_size=12),
    strings=st.lists(st.text(alphabet="ab\n", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_what_was_sent_stays_where_the_suffix_is_trimmed_too(tokens, strings):
    text, _, sent = run(StopRules(strings=tuple(strings)), tokens, suffix=")\nab\n")
    assert all(string not in text for string in strings)
    assert all(text.startswith(one) for one in sent)


def test_a_string_is_found_across_tokens_and_its_beginning_is_held_back():
    text, reason, sent = run(StopRules.verbatim(9, ("\n\nclass",)), ["a", "\n", "\ncl", "ass B"])
    assert (text, reason) == ("a", FinishReason.STOP_STRING)
    assert sent == ["a", "a", "a"]


def test_the_rest_of_the_cursors_line_is_not_repeated_before_a_string():
    text, _, _ = run(StopRules(strings=("\n",)), ["value", ")", "\n"], suffix=")\n")
    assert text == "value"


def test_white_space_alone_is_a_text_to_who_asked_for_all_that_is_written():
    assert run(StopRules.verbatim(9), [" ", "\n\n", "\n\n\n "])[0] == " \n\n\n\n\n "


def test_a_line_with_less_white_space_than_asked_for_ends_the_text():
    rules = StopRules(min_indent=4, indentation=False)
    assert run(rules, ["a", "\n", "    b", "\n", "  c"])[0] == "a\n    b"
    assert run(rules, ["a", "\n", "\n", "    b\n", "c\n"])[0] == "a\n\n    b"


def test_an_empty_string_is_refused():
    with pytest.raises(ConfigurationError, match="empty"):
        StopRules(strings=("a", ""))
