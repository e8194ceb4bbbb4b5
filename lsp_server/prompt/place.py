"""The kinds of places in code that a cursor can be at, and how lines show them."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from engine.host.protocol import Position
from engine.stopping.lines import indent_of
from lsp_server.prompt.comments import code_of

_TRIVIAL_REST = re.compile(r"""\s*[)>}\]"'`]*\s*[:{;,]?\s*""")  # of a line
_WORD = 100  # characters, longer than any that opens a block
_FAR = 3  # lines above the cursor in which a block may have been opened
_NEAR = 50  # lines below it in which it may go on


class Place(StrEnum):
    """Where a cursor is; the first that applies, in this order."""

    COMMENT = "comment"
    STRING = "string"
    MID_LINE = "mid_line"  # more than closing characters follow on the line
    EMPTY_BLOCK = "empty_block"  # opened just before, and nothing in it
    BLANK_LINE = "blank_line"
    CODE = "code"


class Opener(NamedTuple):
    """The last token before the cursor, if it may open a block."""

    row: int
    column: int
    token: str  # "{", ":" or a word


def find_opener(
    lines: Sequence[str], position: Position, signs: tuple[str, ...], words: tuple[str, ...] = ()
) -> Opener | None:
    """What may open a block right before the cursor: on its line, or above if that is blank."""
    texts = [lines[position.line][: position.character]]
    texts += reversed(lines[max(position.line - _FAR, 0) : position.line])
    for distance, text in enumerate(texts):
        code = code_of(text, signs)
        if code:
            last_word = re.split(r"\W", code[-_WORD:])[-1]
            token = code[-1] if code[-1] in "{:" else last_word
            is_opener = token in ("{", ":", *words)
            return Opener(position.line - distance, len(code) - 1, token) if is_opener else None
        if text.strip():
            return None  # there is a comment in between
    return None


def place_in_code(lines: Sequence[str], position: Position, block: tuple[str, int] | None) -> Place:
    """The place of a cursor that is in neither a comment nor a string.

    `block` is the token that opens a block right before the cursor, and the indentation of its
    statement.
    """
    line = lines[position.line]
    if not _TRIVIAL_REST.fullmatch(line[position.character :]):
        return Place.MID_LINE
    if block is not None and _is_empty(lines, position, *block):
        return Place.EMPTY_BLOCK
    return Place.CODE if line.strip() else Place.BLANK_LINE


def _is_empty(lines: Sequence[str], position: Position, opener: str, indent: int) -> bool:
    """Whether nothing follows that is indented deeper than the block's statement."""
    rest = lines[position.line][position.character :].strip()
    if rest:
        return opener == "{" and rest[0] in "})]"
    below = lines[position.line + 1 : position.line + 1 + _NEAR]
    following = next(filter(str.strip, below), None)
    return following is None or indent_of(following) <= indent
