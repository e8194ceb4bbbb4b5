"""Finds brackets and quotes that are open, or closed but never opened."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

OPENING, CLOSING = "([{", ")]}"
QUOTES = "\"'`"
LONG_QUOTES = ('"""', "'''")
CLOSERS = CLOSING + QUOTES
BLOCK_OPENERS = (":", *OPENING)  # at the end of a line they open a block, in most languages
_IN_WORD = r"(?<![\w$&{/])"  # `$#`, `${#x}`, `a#b` begin no comment
PARTNERS = dict(zip(OPENING + QUOTES, CLOSING + QUOTES, strict=True))


class Balance(NamedTuple):
    """The brackets and the quote that a text leaves open, and brackets that it only closes."""

    open: str = ""  # brackets, innermost last
    quote: str | None = None
    quote_start: int | None = None
    comment: int | None = None  # start of a comment still open at the text's end
    starts: tuple[int, ...] = ()  # of the brackets in `open`
    unopened: tuple[int, ...] = ()  # places of closing brackets

    @property
    def surplus(self) -> int:
        """Number of closing brackets that were never opened."""
        return len(self.unopened)

    @property
    def closers(self) -> str:
        """The text that closes everything, as editors insert it behind the cursor."""
        opened = self.open + (self.quote or "")
        return "".join(PARTNERS[opener] for opener in reversed(opened))


def balance(text: str, signs: tuple[str, ...] = (), spanning: str = "`") -> Balance:
    """Read a text from outside of strings; `signs` begin comments, `spanning` quotes span lines."""
    opened: list[int] = []
    unopened: list[int] = []
    quote, quote_start, comment = None, None, None
    for match in _tokens(signs).finditer(text):
        token = match.group()
        if token == "\n":
            comment, quote = None, quote if quote and quote in spanning else None
        elif comment is not None or token[0] == "\\":
            continue
        elif quote is not None:
            quote = None if token == quote else quote
        elif token in QUOTES:
            quote = None if _is_apostrophe(text, match.start()) else token
            quote_start = match.start()
        elif token in OPENING:
            opened.append(match.start())
        elif token not in CLOSING:
            comment = match.start()
        elif opened:
            opened.pop()
        else:
            unopened.append(match.start())
    still_open = "".join(text[start] for start in opened)
    start = quote_start if quote else None
    return Balance(still_open, quote, start, comment, tuple(opened), tuple(unopened))


def num_open(text: str, opening: str = OPENING, closing: str = CLOSING) -> int:
    """Return opened minus closed brackets, including those in strings and comments."""
    return sum(map(text.count, opening)) - sum(map(text.count, closing))


def statement(lines: Iterable[str], opening: str, closing: str) -> Iterator[str]:
    """Yield the first line and the lines to the end of its brackets, and read no further."""
    depth = 0
    for line in lines:
        yield line
        depth += num_open(line, opening, closing)
        if depth <= 0:
            return


@cache
def _tokens(signs: tuple[str, ...]) -> re.Pattern[str]:
    comments = "".join(f"|{_IN_WORD if sign == '#' else ''}{re.escape(sign)}" for sign in signs)
    return re.compile(r"""\n|\\.|[()\[\]{}"'`]""" + comments)


def _is_apostrophe(text: str, start: int) -> bool:
    """Whether a `'` opens no string, as in "don't" or a Rust lifetime."""
    before = text[max(start - 1, 0) : start]
    return text[start] == "'" and (before.isalnum() or before in ("<", "&"))
