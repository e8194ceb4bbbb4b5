"""Text to token ids and back. Strings that name special tokens are plain text here.

Special tokens enter a prompt by id, from `engine.model.fim`, never from a user's text.
"""

import re
from collections.abc import Iterable
from typing import Self

from tokenizers import Tokenizer as Backend

from engine.errors import UnsupportedModelError
from engine.model.loading.tokenizer_document import TokenizerDocument
from engine.model.vocabulary import Vocabulary

_LONG_CHARS = 10_000  # about 10 ms
_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """A model's tokenizer. Encoding what `decode` returns gives the same text, in any script."""

    def __init__(self, document: TokenizerDocument, end_ids: Iterable[int] = ()) -> None:
        """Build the tokenizer; `end_ids` are ends of text that the model's configuration names.

        Raises UnsupportedModelError.
        """
        try:
            self._backend = Backend.from_str(document.plain)
        except Exception as error:  # tokenizers raises it bare
            raise UnsupportedModelError(f"tokenizer.json cannot be used: {error}") from error
        ids = self._backend.get_vocab() | document.specials
        specials = document.specials.values()
        self.vocabulary = Vocabulary(ids, specials, end_ids, byte_level=document.byte_level)
        self.start_ids = document.start_ids

    @classmethod
    def from_json(cls, text: str, end_ids: Iterable[int] = ()) -> Self:
        """Read a tokenizer.json. Raises ModelCorruptError or UnsupportedModelError."""
        return cls(TokenizerDocument.read(text), end_ids)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text. Lone surrogates, which no encoding has, become U+FFFD.

        A long one is encoded as a batch of one, in which tokenizers lets other threads run.
        """
        plain = encodable(text)
        if len(text) < _LONG_CHARS:
            encoding = self._backend.encode(plain, add_special_tokens=False)
        else:
            (encoding,) = self._backend.encode_batch([plain], add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids

    def decode_bytes(self, token_ids: Iterable[int]) -> bytes:
        """Return the bytes of the tokens; they may end within a character."""
        return b"".join(map(self.vocabulary.bytes_of, token_ids))

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of the tokens; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(token_ids).decode("utf-8", "replace")


def encodable(text: str) -> str:
    """Return the text with U+FFFD for its lone surrogates."""
    return _SURROGATE.sub("\ufffd", text)
