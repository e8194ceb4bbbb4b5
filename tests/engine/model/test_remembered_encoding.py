"""What is encoded again at a key, and what is known."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.remembered_encoding import (
    SAMPLE,
    RememberedEncoding,
    allows_blocks,
    split_blocks,
)
from tests.support.trained_tokenizers import SPLITTERS, edited, edits, texts, trained


class Encoding:
    """A character is a token; notes the texts that it was asked for."""

    def __init__(self, start=()):
        self.start = start
        self.asked = []

    def __call__(self, text):
        self.asked.append(text)
        return [*self.start, *map(ord, text)]


@pytest.fixture
def encoding():
    return Encoding()


def made(encoding, most_chars=1000):
    remembered = RememberedEncoding(encoding, most_chars, in_blocks=allows_blocks(SAMPLE, encoding))
    if isinstance(encoding, Encoding):
        encoding.asked.clear()  # of how it was tried
    return remembered


def test_a_key_has_one_line_encoded(encoding):
    remembered = made(encoding)
    remembered("a = 1\n\nb = 2\nc")
    assert remembered("a = 1\n\nb = 2\nc =") == [*map(ord, "a = 1\n\nb = 2\nc =")]
    assert encoding.asked == ["a = 1\n\n", "b = 2\n", "c", "c ="]


def test_what_is_used_stays_and_what_is_not_goes(encoding):
    remembered = made(encoding, 200)
    used, unused = "used" * 10, "unused" * 10
    for number in range(20):
        remembered(used)
        remembered(f"{number:040}")
    remembered(unused)
    encoding.asked.clear()
    for number in range(20):
        remembered(used)
        remembered(f"other {number:040}")
    remembered(unused)
    assert used not in encoding.asked
    assert encoding.asked[-1] == unused


def test_a_caller_has_a_list_of_its_own(encoding):
    remembered = made(encoding)
    remembered("a\n").clear()
    assert remembered("a\n") == [*map(ord, "a\n")]


def test_a_tokenizer_that_marks_beginnings_is_asked_for_whole_texts():
    encoding = Encoding(start=(0,))
    remembered = made(encoding)
    assert remembered("a\nb\n") == [0, *map(ord, "a\nb\n")]
    assert encoding.asked == ["a\nb\n"]


def test_what_is_remembered_takes_a_few_bytes_a_character():
    texts = [f"total_{number} = price_{number} + tax\n" for number in range(4000)]
    remembered = made(lambda text: [1000 + len(text)] * (len(text) // 3), 10**6)
    tracemalloc.start()
    for text in texts:
        remembered(text).clear()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 12 * sum(map(len, texts))


@given(st.text("ab \n\r\t\f"))
def test_blocks_are_the_text_cut_before_lines_that_are_not_blank(text):
    blocks = split_blocks(text)
    assert "".join(blocks) == text
    assert all(
        block.startswith("\n") is False or number == 0 for number, block in enumerate(blocks)
    )
    assert all(block.endswith("\n") for block in blocks[:-1])


def test_a_tokenizer_that_marks_the_beginning_of_a_text_allows_no_blocks():
    assert allows_blocks("one\ntwo\n", lambda text: [*map(ord, text)])
    assert not allows_blocks("one\ntwo\n", lambda text: [0, *map(ord, text)])


@pytest.fixture(scope="module", params=SPLITTERS)
def tokenizer(request):
    return trained(SPLITTERS[request.param])


@settings(deadline=None, max_examples=100)
@given(texts, edits)
def test_tokens_after_any_edits_are_those_of_the_whole_text(tokenizer, text, changes):
    remembered = made(lambda text: tokenizer.encode(text).ids)
    for change in changes:
        text = edited(text, *change)
        assert remembered(text) == tokenizer.encode(text).ids
