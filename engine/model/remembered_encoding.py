"""An `encode` that remembers: a key changes one line of a prompt, and only that is encoded anew.

It goes by blocks, which most tokenizers encode one by one as they encode the whole. A block begins
with a line that is not blank: blank lines and line ends may join into one token, but no line end
joins the word behind it. Whether a tokenizer keeps to this has to be tried.
"""

import re
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence

Encode = Callable[[str], Sequence[int]]

# What code is made of, as far as tokenizers differ: blank lines, ends of lines, what stands at the
# beginning of one and at its end.
_TRIED = (
    "class A(B):\n    '''Über.'''\n\n    x = [1, 22]  # ...\n\n\n\tdef f(self):\r\n\t\treturn {\n"
    "  \t\n}\n\r\n  }\n;\n\n@a\n\n#!\n(b)\n\n  \n'c'\n 3\n\n_d\n\n…\n日本\n\n  語 \n\n"
)
_SHORT_CHARS = 200  # few blocks: to look them up is quick
_MOST_TEXTS = 24  # a prompt asks for about a dozen
# Blank lines before the first line, a line, its end, and the blank lines behind it.
_BLOCK = re.compile(r"(?:[^\S\n]*\n)*[^\n]*(?:\n(?:[^\S\n]*\n)*|\Z)")


def split_blocks(text: str) -> list[str]:
    """Cut a text before every line that is not blank, but the first; at least one block."""
    return [block for block in _BLOCK.findall(text) if block] or [""]


def allows_blocks(text: str, encode: Encode) -> bool:
    """Whether a tokenizer encodes the text block by block as it does the whole."""
    encoded = [one for block in split_blocks(text) for one in encode(block)]
    return encoded == list(encode(text))


def encodes_blocks(encode: Encode) -> bool:
    """Whether a tokenizer encodes the blocks of code as it encodes the whole, as far as tried."""
    return allows_blocks(_TRIED, encode)


class RememberedEncoding:
    """Token ids of texts; those of the latest texts and blocks are known.

    A tokenizer that is not `in_blocks` joins what lines part, and is asked for whole texts.
    """

    def __init__(
        self, encode: Callable[[str], list[int]], most_chars: int, *, in_blocks: bool
    ) -> None:
        """Remember blocks of `most_chars` characters and one block more, and half as much text."""
        self._encode = encode
        self._most_chars = most_chars
        self._in_blocks = in_blocks
        self._texts: OrderedDict[str, list[int]] = OrderedDict()  # the latest comes last
        self._text_chars = 0
        self._num_chars = 0  # of the recent ones
        self._recent: dict[str, array[int]] = {}
        self._former: dict[str, array[int]] = {}  # used again, they are recent ones

    def __call__(self, text: str) -> list[int]:
        """Token ids as `encode` returns them, in a list of the caller's own."""
        if len(text) < _SHORT_CHARS:
            return self._joined(text)
        ids = self._texts.get(text)
        if ids is None:
            ids = self._joined(text)
            self._keep(text, ids)
        else:
            self._texts.move_to_end(text)
        return ids.copy()

    def _joined(self, text: str) -> list[int]:
        ids = list[int]()
        for block in split_blocks(text) if self._in_blocks else [text]:
            ids += self._recent.get(block) or self._known(block)
        return ids

    def _keep(self, text: str, ids: list[int]) -> None:
        self._texts[text] = ids
        self._text_chars += len(text)
        while len(self._texts) > _MOST_TEXTS or self._text_chars > self._most_chars // 2:
            oldest, _ = self._texts.popitem(last=False)
            self._text_chars -= len(oldest)

    def _known(self, block: str) -> "array[int]":
        ids = self._former.pop(block, None)
        if ids is None:
            ids = array("i", self._encode(block))  # a list takes several times as much
        self._recent[block] = ids
        self._num_chars += len(block)
        if self._num_chars > self._most_chars // 2:
            self._former, self._recent, self._num_chars = self._recent, {}, 0
        return ids
