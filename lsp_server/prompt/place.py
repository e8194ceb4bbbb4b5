"""The kinds of places where a cursor can be, how to find them by text, and how much to write there.

Text alone shows no strings that span lines, and such comments only if they begin nearby.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from engine.config import StopRules
from engine.host.protocol import Position
from engine.text.brackets import Balance, balance, num_open
from engine.text.lines import indent_of
from lsp_server.language_names import PROSE, block_comments, comment_signs
from lsp_server.settings import Lines

_TRIVIAL_REST = re.compile(r"""\s*[)>}\]"'`]*\s*[:{;,]?\s*""")  # of closing signs
_LONG = 2_000  # characters; longer lines are not written by hand
_WORD = 100  # characters; no word that opens a block is longer
_FAR = 3  # lines above the cursor in which a block may have been opened
_NEAR = 50  # lines below the cursor in which that block may continue
_COMMENT_LINES = 200  # lines above the cursor in which a block comment may begin
_COMMENT_CHARS = 20_000  # characters before the cursor in which it may begin
_STATEMENT_LINES = 50  # the most lines of a statement's head
_WORDS = ("then", "do", "begin", "else")  # these open a block in languages without brackets
_HEAD = re.compile(
    r"\s*(async\s+)?(def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b"
)
_COMMENT_SIGNS = " \t/*"  # prefixes of a documentation comment's lines
_BEFORE_LITERAL = ("=", "(", ",", ":", "[", "?", "&&", "||", "return")


class Place(StrEnum):
    """Where a cursor is; the first that applies, in this order."""

    COMMENT = "comment"
    STRING = "string"
    MID_LINE = "mid_line"  # more than closing characters follow on the line
    EMPTY_BLOCK = "empty_block"  # in an empty block, opened just before
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
    """Return the possible opener of a block right before the cursor, also across blank lines."""
    texts = [lines[position.line][: position.character]]
    texts += reversed(lines[max(position.line - _FAR, 0) : position.line])
    for distance, text in enumerate(texts):
        code = text[: _scan_line(text, signs).comment].rstrip()
        if code:
            last_word = re.split(r"\W", code[-_WORD:])[-1]
            token = code[-1] if code[-1] in "{:" else last_word
            is_opener = token in ("{", ":", *words)
            return Opener(position.line - distance, len(code) - 1, token) if is_opener else None
        if text.strip():
            return None  # a comment is in between
    return None


def place_in_code(lines: Sequence[str], position: Position, block: tuple[str, int] | None) -> Place:
    """Return a place in code; `block` is the token and indentation of a block opened before it."""
    line = lines[position.line]
    if not _TRIVIAL_REST.fullmatch(line[position.character :]):
        return Place.MID_LINE
    if block is not None and _is_empty(lines, position, *block):
        return Place.EMPTY_BLOCK
    return Place.CODE if line.strip() else Place.BLANK_LINE


def _is_empty(lines: Sequence[str], position: Position, opener: str, indent: int) -> bool:
    rest = lines[position.line][position.character :].strip()
    if rest:
        return opener == "{" and rest[0] in "})]"
    below = lines[position.line + 1 : position.line + 1 + _NEAR]
    following = next(filter(str.strip, below), None)
    return following is None or indent_of(following) <= indent


def is_below_colon(lines: Sequence[str], row: int) -> bool:
    """Whether the row is blank and follows an announcement, such as `Example:`."""
    own, *above = (
        line.strip(_COMMENT_SIGNS) for line in reversed(lines[max(row - 2, 0) : row + 1])
    )
    return not own and next(filter(None, above), "").endswith(":")


class Scope(StrEnum):
    """How far a completion may go."""

    ONE_LINE = "one_line"
    DEEPER = "deeper"  # one line, and following lines that are indented deeper
    SEVERAL = "several"
    INVOKED = "invoked"  # several lines for an explicit request, without a time limit


# A line has 19 characters in the median, 73 at most in 95 %.
BOUNDS = {
    Scope.ONE_LINE: StopRules(max_tokens=64, single_line=True),
    Scope.DEEPER: StopRules(max_tokens=128, time_limit_ms=300),
    Scope.SEVERAL: StopRules(max_tokens=192, time_limit_ms=1_500),
    Scope.INVOKED: StopRules(max_tokens=256),
}
_AUTOMATIC = {  # elsewhere one line
    Place.EMPTY_BLOCK: Scope.SEVERAL,
    Place.BLANK_LINE: Scope.SEVERAL,
    Place.CODE: Scope.DEEPER,
}


def scope_at(
    place: Place, lines: Lines = "auto", *, is_invoked: bool = False, after_accept: bool = False
) -> Scope:
    """Return how much to write, within the user's setting; after an accept it may be more."""
    if lines == "single":
        return Scope.ONE_LINE
    if is_invoked:
        return Scope.INVOKED
    scope, is_wider = _AUTOMATIC.get(place, Scope.ONE_LINE), after_accept or lines == "multi"
    return Scope.SEVERAL if is_wider and scope is Scope.DEEPER else scope


def place_by_text(lines: Sequence[str], position: Position, language_id: str) -> Place:
    """Judge the cursor's place by the lines alone."""
    inside = inside_by_text(lines, position, language_id)
    if inside is not None:
        return inside
    opener = find_opener(lines, position, comment_signs(language_id), _WORDS)
    block = None if opener is None else block_by_text(lines, opener)
    return place_in_code(lines, position, block)


def inside_by_text(lines: Sequence[str], position: Position, language_id: str) -> Place | None:
    """Return the comment or string that the cursor is in, as far as the text shows."""
    if language_id in PROSE:
        return None
    before = lines[position.line][: position.character]
    scan = _scan_line(before, comment_signs(language_id))
    above = lines[max(position.line - _COMMENT_LINES, 0) : position.line]
    head = "\n".join((*above, before))[-_COMMENT_CHARS:]
    if scan.comment is not None or comment_end(head, language_id):
        return Place.COMMENT
    return Place.STRING if scan.quote is not None else None


def block_by_text(lines: Sequence[str], opener: Opener) -> tuple[str, int] | None:
    """Return the token and the statement's indentation, if `opener` opens a block."""
    row = statement_row(lines, opener.row)
    is_block = True
    if opener.token == ":":
        is_block = _HEAD.match(lines[row]) is not None
    elif opener.token == "{":
        is_block = opens_block(lines[opener.row][: opener.column + 1])
    return (opener.token, indent_of(lines[row])) if is_block else None


def opens_block(text: str) -> bool:
    """Whether `text` ends with a brace that opens a block, not a literal."""
    code = text.rstrip()
    return code.endswith("{") and not code[:-1].rstrip().endswith(_BEFORE_LITERAL)


def is_header(line: str) -> bool:
    """Whether the line is the head of a block, as far as one line shows."""
    code = line.rstrip()
    return code.endswith(":") and _HEAD.match(code) is not None


def statement_row(lines: Sequence[str], row: int) -> int:
    """Return the first row, by balanced brackets, of the statement whose head ends in `row`."""
    depth = 0
    for first in range(row, max(row - _STATEMENT_LINES, -1), -1):
        depth += num_open(lines[first].rstrip().removesuffix("{"))
        if depth >= 0:
            return first
    return row


def _scan_line(text: str, signs: tuple[str, ...]) -> Balance:
    """Read a line that begins outside strings and comments, unless it is very long."""
    return Balance() if len(text) > _LONG else balance(text, signs)


def comment_end(text: str, language: str) -> str:
    """Return the sign that would end a block comment open at the end of `text`; "" if none."""
    ends, at = block_comments(language), 0
    while ends:
        found = next((one for one in _marks(language).finditer(text, at) if one["block"]), None)
        if found is None:
            break
        end = ends[found["block"]]
        at = text.find(end, found.end())
        if at < 0:
            return end
        at += len(end)
    return ""


@cache
def _marks(language: str) -> re.Pattern[str]:
    """Match block comments, and the strings and line comments that may contain their signs."""
    lines = "".join(f"|{re.escape(sign)}[^\n]*" for sign in comment_signs(language))
    blocks = "|".join(map(re.escape, block_comments(language)))
    string = r"""(?P<quote>["`]|(?<!\w)')(?:\\.|(?!(?P=quote))[^\\\n])*(?P=quote)"""
    # Escaped quotes must begin no string, or each one would be read to the end of the line.
    return re.compile(rf"\\.|{string}|(?P<block>{blocks}){lines}")
