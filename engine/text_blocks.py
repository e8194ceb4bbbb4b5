"""Texts in blocks that most tokenizers encode one by one as they encode the whole.

A block begins with a line that is not blank, for there tokenizers that split text before they merge
it always split: blank lines and line ends may join into one token, but no line end joins the word
behind it. Whether a tokenizer keeps to this has to be tried.
"""

import re
from collections.abc import Callable, Sequence

Encode = Callable[[str], Sequence[int]]

# Blank lines before the first line, a line, its end, and the blank lines behind it.
_BLOCK = re.compile(r"(?:[^\S\n]*\n)*[^\n]*(?:\n(?:[^\S\n]*\n)*|\Z)")


def split_blocks(text: str) -> list[str]:
    """Cut a text before every line that is not blank, but the first; at least one block."""
    return [block for block in _BLOCK.findall(text) if block] or [""]


def allows_blocks(text: str, encode: Encode) -> bool:
    """Whether a tokenizer encodes the text block by block as it does the whole."""
    encoded = [one for block in split_blocks(text) for one in encode(block)]
    return encoded == list(encode(text))
