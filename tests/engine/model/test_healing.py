"""Healing follows an answer token by token until what was cut off is written again."""

import pytest

from engine.model.byte_trie import ByteTrie
from engine.model.healing import Healing
from engine.model.vocabulary import Vocabulary


def test_owes_what_a_shorter_token_leaves() -> None:
    assert Healing(b" retu").after(b" re") == Healing(b"tu")


def test_a_longer_token_pays_all() -> None:
    assert Healing(b" retu").after(b" return").done


def test_another_word_is_not_allowed() -> None:
    assert not Healing(b" retu").allows(b" raise")
    assert not Healing(b" retu").allows(b"")
    with pytest.raises(ValueError, match=r"b' raise' does not keep to b' retu'"):
        Healing(b" retu").after(b" raise")


def test_everything_is_allowed_when_nothing_is_owed() -> None:
    done = Healing(b"")
    assert done.allows(b"x")
    assert done.after(b"x") is done
    with pytest.raises(ValueError, match="every token is allowed"):
        done.allowed(ByteTrie(Vocabulary({}, [], [], byte_level=True)))
