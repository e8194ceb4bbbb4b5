"""Brackets and quotes that are open, or closed without having been opened."""

import re
from functools import cache
from typing import NamedTuple

OPENING, CLOSING = "([{", ")]}"
QUOTES = "\"'`"
CLOSERS = CLOSING + QUOTES
PARTNERS = dict(zip(OPENING + QUOTES, CLOSING + QUOTES, strict=True))


class Balance(NamedTuple):
    """What a text leaves open, innermost last, and how many closing brackets it has too many.

    `starts` are the places of the open brackets; `comment` is where a comment begins that goes on
    at the text's end.
    """

    open: str = ""
    surplus: int = 0
    quote: str | None = None
    comment: int | None = None
    starts: tuple[int, ...] = ()

    @property
    def closers(self) -> str:
        """What would close everything, as editors insert it behind the cursor."""
        marks = self.open + (self.quote or "")
        return "".join(PARTNERS[mark] for mark in reversed(marks))


def balance(text: str, marks: tuple[str, ...] = ()) -> Balance:
    """Read a text that begins outside of strings; `marks` begin comments."""
    opened: list[int] = []
    surplus, quote, comment = 0, None, None
    for match in _tokens(marks).finditer(text):
        token = match.group()
        if token == "\n":
            comment, quote = None, quote if quote == "`" else None
        elif comment is not None or token[0] == "\\":
            continue
        elif quote is not None:
            quote = None if token == quote else quote
        elif token in QUOTES:
            quote = None if _is_apostrophe(text, match.start()) else token
        elif token in OPENING:
            opened.append(match.start())
        elif token not in CLOSING:
            comment = match.start()
        elif opened:
            opened.pop()
        else:
            surplus += 1
    marks_open = "".join(text[start] for start in opened)
    return Balance(marks_open, surplus, quote, comment, tuple(opened))


@cache
def _tokens(marks: tuple[str, ...]) -> re.Pattern[str]:
    comments = "".join(f"|{re.escape(mark)}" for mark in marks)
    return re.compile(r"""\n|\\.|[()\[\]{}"'`]""" + comments)


def _is_apostrophe(text: str, start: int) -> bool:
    before = text[max(start - 1, 0) : start]
    return text[start] == "'" and (before.isalnum() or before in ("<", "&"))
