"""Stop strings: none of them is ever in a text, nor was a part of one sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import StopRules
from engine.errors import ConfigurationError
from engine.request import FinishReason
from engine.stopping import Stopper


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
