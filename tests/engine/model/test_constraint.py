"""An answer begins with the bytes cut off at the cursor, token by token, and is free behind them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.constraint import healed_start
from engine.model.vocabulary import Vocabulary
from tests.support.byte_tokenizer import own_tokenizer

TOKENIZER = own_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
WORDS = Vocabulary({" re": 0, " return": 1, " raise": 2, "": 3}, [], [], byte_level=False)
_WORDS = st.sampled_from(
    [b" return", b"def", b"    ", b"\n\n", b"):\n", b" = ", b"\xff\xff", b"im"]
)
_REMAINING = st.lists(_WORDS | st.binary(max_size=3), max_size=3).map(b"".join)


@given(_REMAINING)
def test_finds_what_a_look_at_every_token_finds(remaining: bytes) -> None:
    texts = {
        token_id: VOCABULARY.bytes_of(token_id)
        for token_id in range(len(VOCABULARY))
        if token_id not in VOCABULARY.special_ids
    }
    keeping = [
        token_id
        for token_id, text in texts.items()
        if text.startswith(remaining) or remaining.startswith(text)
    ]
    found = VOCABULARY.ids_completing(remaining)
    assert found.dtype == np.int64
    assert found.tolist() == sorted(keeping)


def test_tokens_of_equal_bytes_are_all_found_and_empty_ones_never() -> None:
    vocabulary = Vocabulary({"a": 0, "ab": 1, "<0x61>": 2, "": 3}, [], [], byte_level=False)
    assert vocabulary.ids_completing(b"ab").tolist() == [0, 1, 2]
    assert vocabulary.ids_completing(b"b").tolist() == []
    assert vocabulary.ids_completing(b"").tolist() == [0, 1, 2]


@given(_REMAINING, st.data())
def test_any_walk_along_allowed_tokens_pays_what_is_owed(remaining, data):
    constraint, text = healed_start(remaining, VOCABULARY), b""
    while constraint is not None:
        token_id = data.draw(st.sampled_from(constraint.allowed_ids.tolist()))
        assert constraint.allows(token_id)
        constraint, text = constraint.after(token_id), text + VOCABULARY.bytes_of(token_id)
    assert text.startswith(remaining)


_AVOIDED = st.lists(
    st.sampled_from([b"return x", b"}", b"def f():", "été".encode()]), min_size=1, max_size=2
).map(tuple)


@given(_REMAINING, _AVOIDED, st.data())
def test_any_walk_begins_unlike_what_it_avoids(remaining, avoided, data):
    constraint, text = healed_start(remaining, VOCABULARY, avoided), b""
    while constraint is not None and len(text) < len(remaining) + 20:
        spelled = st.sampled_from(constraint.allowed_ids.tolist())
        token_id = data.draw(spelled)
        constraint, text = constraint.after(token_id), text + VOCABULARY.bytes_of(token_id)
    assert text.startswith(remaining)
    assert not text[len(remaining) :].strip().startswith(avoided)


@pytest.mark.parametrize("owed", [b"", b"  ", b" retu", b"x."])
def test_no_token_begins_what_is_avoided_however_it_is_cut(owed):
    constraint = healed_start(owed, VOCABULARY, (b"rn x", b"return x", b"}"))
    allowed = [one for one in range(len(VOCABULARY)) if constraint.allows(one)]
    assert constraint.allowed_ids.tolist() == allowed
    texts = {VOCABULARY.bytes_of(one).strip() for one in allowed}
    assert texts.isdisjoint(
        {b"r", b"re", b"return", b"return x", b"}"} if not owed else {b"return"}
    )


def test_white_space_puts_off_what_is_avoided_and_another_word_ends_it():
    (blank,) = (one for one in range(len(VOCABULARY)) if VOCABULARY.bytes_of(one) == b"\n")
    (word,) = (one for one in range(len(VOCABULARY)) if VOCABULARY.bytes_of(one) == b"d")
    constraint = healed_start(b"", VOCABULARY, (b"}",))
    assert constraint.after(blank) is constraint
    assert constraint.after(word) is None


def test_a_text_that_must_not_be_empty_begins_before_it_ends():
    constraint = healed_start(b"", VOCABULARY, ())
    ids = range(len(VOCABULARY))
    assert constraint.allowed_ids.tolist() == [one for one in ids if constraint.allows(one)]
    assert {one for one in ids if not constraint.allows(one)} >= {*VOCABULARY.end_ids}
    assert VOCABULARY.end_ids
    for one in constraint.allowed_ids.tolist():
        is_blank = not VOCABULARY.bytes_of(one).strip()
        assert constraint.after(one) is (constraint if is_blank else None)


def test_nothing_owed_is_no_constraint():
    assert healed_start(b"", VOCABULARY) is None


@pytest.mark.parametrize("owed", [b"return", b"    ", "é".encode(), b"\n\n"])
def test_the_list_and_the_question_agree_on_every_token(owed):
    constraint = healed_start(owed, VOCABULARY)
    allowed = [one for one in range(len(VOCABULARY)) if constraint.allows(one)]
    assert allowed
    assert constraint.allowed_ids.tolist() == allowed


def test_special_tokens_owe_nothing_and_pay_nothing():
    assert VOCABULARY.special_ids
    constraint = healed_start(b"<|", VOCABULARY)
    assert not any(constraint.allows(token_id) for token_id in VOCABULARY.special_ids)


def test_another_word_is_not_allowed():
    retu = healed_start(b" retu", WORDS)
    assert not retu.allows(2)
    assert not retu.allows(3)
    with pytest.raises(ValueError, match=r"b' raise' does not keep to b' retu'"):
        retu.after(2)
