"""Cuts text outside the requested scope: other blocks, and prose."""

import re
from collections.abc import Sequence

from engine.text.brackets import LONG_QUOTES
from engine.text.lines import first_of_last, indent_of
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.language_names import PROSE
from lsp_server.prompt.place import Scope

_SENTENCE = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]?[A-Z])|(?<=[。！？])")  # noqa: RUF001 - wide ones, too
_CLOSING_LINE = re.compile(r"\s*[)\]}]+[;,]?\s*")
_FENCE = re.compile(r"\s*`{3,}[\w+#.-]*\s*")


def in_scope(text: str, context: CursorContext) -> str:
    """Keep the requested lines, and none outside the cursor's block."""
    lines = _unfenced(text.split("\n"), context)
    first = next((n for n, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return ""
    if context.scope is Scope.ONE_LINE:
        # A line end alone would only push the rest of the line down.
        first = 0 if context.rest.strip() else first
        line = "\n".join(lines[: first + 1])
        is_prose = context.language_id in PROSE
        return _SENTENCE.split(line, maxsplit=1)[0] if is_prose else line
    end = _block_end(lines, first, context)
    if context.scope is Scope.DEEPER:
        end = min(end, _deeper_end(lines, first, context))
    return "\n".join(lines[:end])


def _unfenced(lines: list[str], context: CursorContext) -> list[str]:
    """Keep the lines before a Markdown fence, with which models end code; prose may have fences."""
    if not context.comment_signs or context.text_ends:
        return lines
    whole = [context.before + lines[0], *lines[1:]]
    end = next((n for n, line in enumerate(whole) if _FENCE.fullmatch(line)), len(lines))
    return lines[:end]


def _block_end(lines: list[str], first: int, context: CursorContext) -> int:
    """Return the end of the cursor's block, which its closing line belongs to."""
    block = _block_indent(lines[first], context)
    for number in range(1, len(lines)):
        line = lines[number]
        is_out = line.strip() and indent_of(line) < block and not _is_directive(line, context)
        if is_out and not lines[number - 1].endswith("\\"):
            return number + 1 if _closes(lines, number, context) else number
    return len(lines)


def _block_indent(first_line: str, context: CursorContext) -> int:
    """Return the indentation of the cursor's block; 0 if no line above can have opened one."""
    begun = first_of_last((*context.above, context.before))
    block = indent_of(begun + "x" if begun else first_line)
    is_opened = any(line.strip() and indent_of(line) < block for line in context.above)
    return block if is_opened or context.is_cut else 0


def _is_directive(line: str, context: CursorContext) -> bool:
    """Whether the line is a preprocessor's, which may be at column 0 in any block."""
    return line.startswith("#") and "#" not in context.comment_signs


def _closes(lines: Sequence[str], number: int, context: CursorContext) -> bool:
    """Whether the line closes a block that no text after the cursor already closes."""
    if _CLOSING_LINE.fullmatch(lines[number]) is None:
        return False
    was, now = context.balance(), context.balance("\n".join(lines[: number + 1]))
    return was is not None and now is not None and now.surplus <= was.surplus


def _deeper_end(lines: list[str], first: int, context: CursorContext) -> int:
    """Return the first line not deeper than the continued one, apart from its closing line."""
    begun = first_of_last((*context.above, context.before))
    base = indent_of(begun + "x" if context.before.strip() else lines[first])
    base = min(base, indent_of(lines[first])) if first else base
    for number in range(first + 1, len(lines)):
        line = lines[number]
        goes_on = lines[number - 1].endswith("\\")
        if line.strip() and indent_of(line) <= base and not goes_on:
            closes = _CLOSING_LINE.fullmatch(line) or _ends_string(lines, number)
            return number + 1 if closes and indent_of(line) == base else number
    return len(lines)


def _ends_string(lines: list[str], number: int) -> bool:
    """Whether the line ends a string or a here-document that the text has begun."""
    line, above = lines[number].strip(), "\n".join(lines[:number])
    if line.isidentifier():
        return re.search(rf"<<\W*{line}\b", above) is not None
    return any(line.startswith(quote) and above.count(quote) % 2 for quote in (*LONG_QUOTES, "`"))
