"""A text in pieces of about a token each, for a model whose tokenizer is not here.

There are rather more pieces than tokens, so that a prompt of so many pieces fits. A piece's number is
its UTF-8 behind a leading 1; numbers below 256 are free for the special tokens of a vocabulary.
"""

import re
from collections.abc import Iterable, Mapping

from engine.model.tokenizer import encodable

FIRST_TEXT_ID = 256
_PIECE = re.compile(
    r" ?[A-Za-z_]{1,5}|[0-9]|[ \t]*\r?\n[ \t]{0,24}|[ \t]{1,16}"
    r"| ?[!-/:-@\[-^`{-~]{1,2}|[\u0080-\u1fff]{1,2}|.",
    re.DOTALL,
)
_WIDE = 0x10000  # characters from here on, as emoji, are several tokens
_FILLER = 1  # counts as a token and is no text


class EstimatedTokens:
    """Numbers for pieces of text, and for special tokens by their names."""

    def __init__(self, specials: Mapping[str, int]) -> None:
        """`specials` are special tokens' names and their ids, from 2 to 255."""
        self.start_ids: tuple[int, ...] = ()  # the upstream knows them
        self._names = {token_id: name for name, token_id in specials.items()}

    def encode(self, text: str) -> list[int]:
        """Return the ids of the pieces of a text, where a special token's name is plain text."""
        ids: list[int] = []
        for piece in _PIECE.findall(encodable(text)):
            ids.append(int.from_bytes(b"\x01" + piece.encode(), "big"))
            if ord(piece[0]) >= _WIDE:
                ids.append(_FILLER)
        return ids

    def decode(self, token_ids: Iterable[int], /) -> str:
        """Return the text of the ids, special tokens by their names."""
        return "".join(self._names.get(one) or _text_of(one) for one in token_ids)


def _text_of(text_id: int) -> str:
    content = text_id.to_bytes((text_id.bit_length() + 7) // 8, "big")
    return content[1:].decode()
