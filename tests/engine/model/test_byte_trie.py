"""The trie finds what a look at every token finds, only faster."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.byte_trie import ByteTrie
from engine.model.constraint import healed_start
from engine.model.tokenizer import Tokenizer
from engine.model.vocabulary import Vocabulary
from tests.support.byte_tokenizer import byte_tokenizer

_VOCABULARY = Tokenizer.from_json(byte_tokenizer().to_str()).vocabulary
_TRIE = ByteTrie(_VOCABULARY)
_WORDS = st.sampled_from(
    [b" return", b"def", b"    ", b"\n\n", b"):\n", b" = ", b"\xff\xff", b"im"]
)
_REMAINING = st.lists(_WORDS | st.binary(max_size=3), max_size=3).map(b"".join)


@given(_REMAINING)
def test_finds_what_a_look_at_every_token_finds(remaining: bytes) -> None:
    texts = {
        token_id: _VOCABULARY.bytes_of(token_id)
        for token_id in range(len(_VOCABULARY))
        if token_id not in _VOCABULARY.special_ids
    }
    keeping = [
        token_id
        for token_id, text in texts.items()
        if text.startswith(remaining) or remaining.startswith(text)
    ]
    found = _TRIE.ids_completing(remaining)
    assert found.dtype == np.int64
    assert found.tolist() == sorted(keeping)


def test_tokens_of_equal_bytes_are_all_found_and_empty_ones_never() -> None:
    vocabulary = Vocabulary({"a": 0, "ab": 1, "<0x61>": 2, "": 3}, [], [], byte_level=False)
    trie = ByteTrie(vocabulary)
    assert trie.ids_completing(b"ab").tolist() == [0, 1, 2]
    assert trie.ids_completing(b"b").tolist() == []
    assert trie.ids_completing(b"").tolist() == [0, 1, 2]


@given(_REMAINING, st.data())
def test_any_walk_along_allowed_tokens_pays_what_is_owed(
    remaining: bytes, data: st.DataObject
) -> None:
    constraint, text = healed_start(remaining, _TRIE), b""
    while constraint.allowed_ids is not None:
        token_id = data.draw(st.sampled_from(constraint.allowed_ids.tolist()))
        assert constraint.allows(token_id)
        constraint, text = constraint.after(token_id), text + _VOCABULARY.bytes_of(token_id)
    assert text.startswith(remaining)
