"""An answer begins with the bytes cut off at the cursor, token by token, and is free behind them."""

import pytest

from engine.model.byte_trie import ByteTrie
from engine.model.constraint import UNCONSTRAINED, healed_start
from engine.model.tokenizer import Tokenizer
from engine.model.vocabulary import Vocabulary
from tests.support.byte_tokenizer import byte_tokenizer

TOKENIZER = Tokenizer.from_json(byte_tokenizer().to_str())
VOCABULARY = TOKENIZER.vocabulary
TRIE = ByteTrie(VOCABULARY)
WORDS = Vocabulary({" re": 0, " return": 1, " raise": 2, "": 3}, [], [], byte_level=False)
WORD_TRIE = ByteTrie(WORDS)


def owing(owed: bytes):
    return healed_start(owed, TRIE)


def test_nothing_owed_is_no_constraint():
    free = owing(b"")
    assert free is UNCONSTRAINED
    assert free.allowed_ids is None
    assert all(free.allows(token_id) for token_id in range(len(VOCABULARY)))
    assert free.after(0) is free


@pytest.mark.parametrize("owed", [b"return", b"    ", "é".encode(), b"\n\n"])
def test_the_list_and_the_question_agree_on_every_token(owed):
    constraint = owing(owed)
    allowed = [one for one in range(len(VOCABULARY)) if constraint.allows(one)]
    assert allowed
    assert constraint.allowed_ids.tolist() == allowed


def test_special_tokens_owe_nothing_and_pay_nothing():
    assert VOCABULARY.special_ids
    constraint = owing(b"<|")
    assert not any(constraint.allows(token_id) for token_id in VOCABULARY.special_ids)


def test_any_way_to_pay_ends_free():
    constraint, paid = owing(b"import os"), b""
    while constraint.allowed_ids is not None:
        token_id = int(constraint.allowed_ids[-1])
        paid += VOCABULARY.bytes_of(token_id)
        constraint = constraint.after(token_id)
    assert paid.startswith(b"import os")


def test_a_token_beside_the_owed_bytes_is_refused():
    (wrong,) = TOKENIZER.encode("z")
    with pytest.raises(ValueError, match="does not keep to"):
        owing(b"import").after(wrong)


def test_owes_what_a_shorter_token_leaves():
    retu = healed_start(b" retu", WORD_TRIE)
    assert retu.after(0) == healed_start(b"tu", WORD_TRIE)


def test_a_longer_token_pays_all():
    assert healed_start(b" retu", WORD_TRIE).after(1) is UNCONSTRAINED


def test_another_word_is_not_allowed():
    retu = healed_start(b" retu", WORD_TRIE)
    assert not retu.allows(2)
    assert not retu.allows(3)
    with pytest.raises(ValueError, match=r"b' raise' does not keep to b' retu'"):
        retu.after(2)
