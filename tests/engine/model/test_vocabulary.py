"""Tokens are bytes, whichever way a vocabulary writes them."""

from hypothesis import given
from hypothesis import strategies as st

from engine.model.vocabulary import Vocabulary
from tests.support.byte_tokenizer import own_tokenizer

_BYTE_LEVEL = own_tokenizer().vocabulary


def test_a_byte_level_vocabulary_spells_every_byte() -> None:
    spelled = {_BYTE_LEVEL.bytes_of(token_id) for token_id in range(len(_BYTE_LEVEL))}
    assert {bytes([byte]) for byte in range(256)} <= spelled
    assert b"        " in spelled
    assert b"):\n" in spelled


def test_a_sentencepiece_vocabulary_writes_blanks_and_bytes_in_its_own_way() -> None:
    ids = {"<s>": 0, "▁def": 1, "▁▁▁": 2, "<0x0A>": 3, "é": 4}
    vocabulary = Vocabulary(ids, [0], [], byte_level=False)
    texts = [vocabulary.bytes_of(token_id) for token_id in range(5)]
    assert texts == [b"<s>", b" def", b"   ", b"\n", "é".encode()]


def test_ids_beyond_the_vocabulary_are_empty() -> None:
    assert _BYTE_LEVEL.bytes_of(len(_BYTE_LEVEL) + 100) == b""


def test_ends_are_marks_by_name_and_what_the_configuration_adds() -> None:
    ids = {"<|endoftext|>": 5, "</s>": 6, "x": 7}
    vocabulary = Vocabulary(ids, specials=[5], ends=[7], byte_level=True)
    assert vocabulary.end_ids == {5, 7}, "`</s>` is plain text in this vocabulary"
    assert vocabulary.special_ids == {5}


@given(st.binary(max_size=8))
def test_a_byte_token_round_trips(content: bytes) -> None:
    ids = {f"<0x{byte:02X}>": byte for byte in range(256)}
    vocabulary = Vocabulary(ids, [], [], byte_level=False)
    assert b"".join(vocabulary.bytes_of(byte) for byte in content) == content
