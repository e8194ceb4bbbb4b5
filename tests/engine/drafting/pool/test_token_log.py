"""What follows occurrences of a context in the log."""

import pytest

from engine.drafting.pool import NgramPool
from engine.drafting.pool.token_log import Wanted
from engine.drafting.tree import Source
from engine.model.vocabulary import Vocabulary

VOCABULARY = Vocabulary({"a": 0, "b": 1, "ab": 2, "bé": 3, "": 4}, [], [], byte_level=False)
START = 5  # beyond the vocabulary, as padded embeddings have ids: it has no text


def continued(text, *documents, excluded=()):
    pool = NgramPool(100, 8)
    for document in documents:
        pool.add([START, *document], Source.OPEN_BUFFER)
    wanted = Wanted(
        text.encode() if isinstance(text, str) else text, VOCABULARY.spellings, excluded
    )
    found = pool.continuations([START], 10, wanted)
    return sorted(tuple(one.tokens.tolist()) for one in found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [(0, 1), (1,), (2, 3)]),
        ("a", [(0, 1), (2, 3)]),  # a whole token, or the first half of one
        ("ab", [(0, 1), (2, 3)]),  # of one token or of two
        ("abb", [(2, 3)]),
        ("abbé", [(2, 3)]),
        ("abbéa", []),  # the text ends before
        ("c", []),
    ],
)
def test_occurrences_are_those_whose_text_begins_so(text, found):
    assert continued(text, [0, 1], [1], [2, 3]) == found


def test_a_character_may_end_within_what_is_wanted():
    assert continued("bé".encode()[:2], [3], [1, 0]) == [(3,)]


def test_tokens_without_text_stand_between():
    assert continued("ab", [0, 4, 7, 1], [4, 1]) == [(0, 4, 7, 1)]


def test_nothing_goes_on_behind_the_end_of_a_document():
    assert continued("ab", [0], [1]) == []


def test_what_goes_on_with_some_tokens_is_left_out():
    assert continued("a", [0, 1], [0, 0], [0], excluded=(0, 1)) == [(0,), (0, 0)]
