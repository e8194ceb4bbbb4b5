"""An `encode` with a cache: a key changes one line of a prompt, and only that line is encoded.

Most tokenizers encode a text block by block as they encode it whole; `allows_blocks` tests that. A
block begins at a line that is not blank, since a line end joins blank lines, but never a word.
"""

import re
from array import array
from collections.abc import Callable, Sequence

Encode = Callable[[str], Sequence[int]]

# Code on which tokenizers differ: blank lines, line ends, and various starts and ends of lines.
SAMPLE = (
    "class A(B):\n    '''Über.'''\n\n    x = [1, 22]  # ...\n\n\n\tdef f(self):\r\n\t\treturn {\n"
    "  \t\n}\n\r\n  }\n;\n\n@a\n\n#!\n(b)\n\n  \n'c'\n 3\n\n_d\n\n…\n日本\n\n  語 \n\n"
)
_SHORT_CHARS = 200  # shorter texts have few blocks, which are quick to look up
_MOST_TEXTS = 24  # a prompt encodes about a dozen
# Blank lines before the first line, a line, its end, and the blank lines after it.
_BLOCK = re.compile(r"(?:[^\S\n]*\n)*[^\n]*(?:\n(?:[^\S\n]*\n)*|\Z)")


def split_blocks(text: str) -> list[str]:
    """Cut a text before every line that is not blank, except the first; at least one block."""
    return [block for block in _BLOCK.findall(text) if block] or [""]


def allows_blocks(text: str, encode: Encode) -> bool:
    """Whether encoding the text block by block gives the tokens of the whole."""
    encoded = [one for block in split_blocks(text) for one in encode(block)]
    return encoded == list(encode(text))


class RememberedEncoding:
    """An `encode` that caches the latest texts and, unless tokens may span lines, blocks."""

    def __init__(
        self, encode: Callable[[str], list[int]], most_chars: int, *, in_blocks: bool
    ) -> None:
        """Cache blocks of `most_chars` characters plus one block, and half as much text."""
        self._encode = encode
        self._most_chars = most_chars
        self._in_blocks = in_blocks
        self._texts: dict[str, list[int]] = {}  # the latest comes last
        self._text_chars = 0
        self._num_chars = 0  # characters of the recent blocks
        self._recent: dict[str, array[int]] = {}
        self._former: dict[str, array[int]] = {}  # a used block moves back to the recent ones

    def __call__(self, text: str) -> list[int]:
        """Return the token ids of `encode`, in a list that the caller may change."""
        if len(text) < _SHORT_CHARS:
            return self._joined(text)
        ids = self._texts.pop(text, None)
        if ids is None:
            ids = self._joined(text)
            self._text_chars += len(text)
        self._texts[text] = ids
        while len(self._texts) > _MOST_TEXTS or self._text_chars > self._most_chars // 2:
            oldest = next(iter(self._texts))
            del self._texts[oldest]
            self._text_chars -= len(oldest)
        return ids.copy()

    def _joined(self, text: str) -> list[int]:
        ids = list[int]()
        for block in split_blocks(text) if self._in_blocks else [text]:
            ids += self._recent.get(block) or self._known(block)
        return ids

    def _known(self, block: str) -> "array[int]":
        ids = self._former.pop(block, None)
        if ids is None:
            ids = array("i", self._encode(block))  # a list takes several times the memory
        self._recent[block] = ids
        self._num_chars += len(block)
        if self._num_chars > self._most_chars // 2:
            self._former, self._recent, self._num_chars = self._recent, {}, 0
        return ids
