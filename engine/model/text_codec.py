"""Text to numbers and back, as laying out a prompt needs it."""

from collections.abc import Iterable
from typing import Protocol


class TextCodec(Protocol):
    """A model's tokenizer, or what estimates one. Decoding what `encode` returns gives the same text."""

    start_ids: tuple[int, ...]  # what the model expects before any text

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, none of them a special token's."""
        ...

    def decode(self, token_ids: Iterable[int], /) -> str:
        """Return the text of the ids; bytes that are no UTF-8 become U+FFFD."""
        ...
