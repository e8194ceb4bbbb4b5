"""The cursor's place without a grammar: by comment signs, indentation and brackets.

Strings that span lines are not noticed; comments that do are, if they begin near by.
"""

import re
from collections.abc import Sequence

from engine.host.protocol import Position
from engine.stopping.brackets import num_open
from engine.stopping.lines import indent_of
from lsp_server.language_names import PROSE, comment_signs
from lsp_server.prompt.comments import comment_end, scan_line
from lsp_server.prompt.place import Opener, Place, find_opener, place_in_code

_COMMENT_LINES = 200  # above the cursor, in which a block comment may begin
_COMMENT_CHARS = 20_000  # likewise
_STATEMENT_LINES = 50  # that the head of a statement may span
_WORDS = ("then", "do", "begin", "else")  # open a block in languages without brackets
_HEAD = re.compile(
    r"\s*(async\s+)?(def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b"
)
_BEFORE_LITERAL = ("=", "(", ",", ":", "[", "?", "&&", "||", "return")


def place_by_text(lines: Sequence[str], position: Position, language_id: str) -> Place:
    """Judge the cursor's place by the lines alone."""
    inside = inside_by_text(lines, position, language_id)
    if inside is not None:
        return inside
    opener = find_opener(lines, position, comment_signs(language_id), _WORDS)
    block = None if opener is None else block_by_text(lines, opener)
    return place_in_code(lines, position, block)


def inside_by_text(lines: Sequence[str], position: Position, language_id: str) -> Place | None:
    """The comment or string that the cursor is in, as far as its line shows."""
    if language_id in PROSE:
        return None
    before = lines[position.line][: position.character]
    scan = scan_line(before, comment_signs(language_id))
    if scan.comment is not None or _in_block_comment(lines, position, language_id):
        return Place.COMMENT
    return Place.STRING if scan.quote is not None else None


def block_by_text(lines: Sequence[str], opener: Opener) -> tuple[str, int] | None:
    """The token and the statement's indentation, where `opener` opens a block and no literal."""
    row = statement_row(lines, opener.row)
    is_block = True
    if opener.token == ":":
        is_block = _HEAD.match(lines[row]) is not None
    elif opener.token == "{":
        is_block = opens_block(lines[opener.row][: opener.column + 1])
    return (opener.token, indent_of(lines[row])) if is_block else None


def opens_block(text: str) -> bool:
    """Whether `text` ends with a brace that opens a block and no literal."""
    code = text.rstrip()
    return code.endswith("{") and not code[:-1].rstrip().endswith(_BEFORE_LITERAL)


def is_header(line: str) -> bool:
    """Whether the line is the head of a block, as far as one line shows."""
    code = line.rstrip()
    return code.endswith(":") and _HEAD.match(code) is not None


def statement_row(lines: Sequence[str], row: int) -> int:
    """Where the statement begins whose head ends in `row`: its brackets are closed from there."""
    depth = 0
    for first in range(row, max(row - _STATEMENT_LINES, -1), -1):
        depth += num_open(lines[first].rstrip().removesuffix("{"))
        if depth >= 0:
            return first
    return row


def _in_block_comment(lines: Sequence[str], position: Position, language_id: str) -> bool:
    above = lines[max(position.line - _COMMENT_LINES, 0) : position.line]
    head = "\n".join((*above, lines[position.line][: position.character]))
    return comment_end(head[-_COMMENT_CHARS:], language_id) != ""
