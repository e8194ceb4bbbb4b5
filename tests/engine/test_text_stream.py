"""Token bytes become text only when their characters are whole, without what is owed."""

from engine.completion import TextStream


def test_a_character_comes_when_its_last_byte_has_come():
    stream = TextStream(owed=0)
    assert [stream.push(bytes([byte])) for byte in "aé😀".encode()] == [
        "a",
        "",
        "é",
        "",
        "",
        "",
        "😀",
    ]


def test_the_owed_bytes_are_skipped_across_tokens():
    stream = TextStream(owed=3)
    assert [stream.push(token) for token in (b" r", b"eturn", b" x")] == ["", "turn", " x"]


def test_bytes_that_are_no_text_are_replaced():
    assert TextStream(owed=0).push(b"\xffa") == "\ufffda"
