"""Text that should not have been written: control tokens, other blocks, repetitions."""

import re
from collections.abc import Sequence

from lsp_server.completion.brackets import balance
from lsp_server.completion.surroundings import Surroundings
from lsp_server.prompt.extent import Extent
from lsp_server.prompt.indentation import indent_of
from lsp_server.reasons import Reason

_SENTINEL = re.compile(
    r"<\|(?:endoftext|end_of_text|im_(?:start|end)|fim_\w+|fim-\w+|repo_name|file_sep"
    r"|file_separator|code_(?:prefix|suffix|middle)|prefix|suffix|middle|eot_id)\|>"
    r"|<(?:fim[_-](?:prefix|suffix|middle|pad)|file_sep|repo_name|reponame|end_of_turn)>"
    r"|<\[fim-(?:prefix|suffix|middle)\]>"
    r"|<｜[^｜\n]{1,30}｜>"  # noqa: RUF001 - DeepSeek's own bars
    r"|▁?<(?:PRE|SUF|MID|EOT)>"
)
_CLOSING_LINE = re.compile(r"\s*[)\]}]+[;,]?\s*")
_NEAR = 20  # lines below that tell how deep the block is
_MOST_LINES = 8  # of a block that is repeated
_COPIES = 3  # of a block of several lines
_COPIES_OF_LINE = 4  # of a single line: short runs of equal lines are ordinary code
_UNIT = 32  # characters repeated inside a line
_RUN = 160  # characters that such repeats have to fill


def plain(text: str, around: Surroundings) -> str | Reason:
    """LF line ends, and nothing from the first control token on.

    Where the document speaks of such tokens itself they are text.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        return Reason.MODEL_SAID_NOTHING
    while (found := _SENTINEL.search(text)) and not _speaks_of(around, found.group()):
        if text[: found.start()].strip():
            return text[: found.start()]
        text = text[found.end() :]
        if not text.strip():
            return Reason.ONLY_SENTINELS
    return text


def in_scope(text: str, around: Surroundings) -> str | Reason:
    """As many lines as were asked for, and none outside of the cursor's block."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return text
    if around.extent is Extent.ONE_LINE:
        # A line end alone would only push the rest of the line down.
        first = 0 if around.rest.strip() else first
        return "\n".join(lines[: first + 1])
    end = _block_end(lines, first, around)
    if around.extent is Extent.DEEPER:
        end = min(end, _deeper_end(lines, first, around))
    kept = "\n".join(lines[:end])
    return kept if kept.strip() or not text.strip() else Reason.LEFT_SCOPE


def unrepeated(text: str, _around: Surroundings) -> str | Reason:
    """Only the first copy of lines, or of characters in a line, that come again and again."""
    kept = _first_copy(text.split("\n"))
    start = _run_start(kept)
    kept = kept if start == len(kept) else kept[:start].rstrip()
    return kept if kept.strip() or not text.strip() else Reason.REPEATS_ITSELF


def _speaks_of(around: Surroundings, token: str) -> bool:
    lines = (*around.above, around.before, around.rest, *around.below)
    return any(token in line for line in lines)


def _block_end(lines: list[str], first: int, around: Surroundings) -> int:
    """The first line that leaves the block, if one does."""
    above = next(filter(str.strip, reversed(around.above)), "")
    block = indent_of(around.before + "x") if around.before else indent_of(above)
    following = [indent_of(line) for line in around.below[:_NEAR] if line.strip()]
    floor = min([block, *following[:1], *filter(None, following)]) if following else min(block, 1)
    if not around.before:
        floor = min(floor, indent_of(lines[first]))
    for number in range(max(first + 1, 1), len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        indent = indent_of(line)
        begins_anew = block > 0 and indent == 0 and not lines[number - 1].strip()
        is_free = line.startswith("#")  # preprocessor lines and comments stand where they like
        if begins_anew or (indent < floor and not is_free):
            closes = not following and _closes(lines[: number + 1], around)
            return number + 1 if closes else number
    return len(lines)


def _closes(lines: Sequence[str], around: Surroundings) -> bool:
    """The last line closes what is open above it, at the end of a document."""
    if _CLOSING_LINE.fullmatch(lines[-1]) is None:
        return False
    return balance(around.head + "\n".join(lines), around.marks).surplus == 0


def _deeper_end(lines: list[str], first: int, around: Surroundings) -> int:
    """The first line that is not deeper than the one that was continued, but for its closing."""
    base = indent_of(around.before + lines[0] if around.before.strip() else lines[first])
    base = min(base, indent_of(lines[first])) if first else base
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if line.strip() and indent_of(line) <= base:
            closes = indent_of(line) == base and _CLOSING_LINE.fullmatch(line)
            return number + 1 if closes else number
    return len(lines)


def _first_copy(lines: list[str]) -> str:
    """The text up to where a block of lines has been repeated too often."""
    for start in range(len(lines)):
        for length in range(1, _MOST_LINES + 1):
            block = lines[start : start + length]
            copies = _COPIES_OF_LINE if length == 1 else _COPIES
            run = lines[start : start + length * copies]
            if any(map(str.strip, block)) and run == block * copies:
                return "\n".join(lines[: start + length])
    return "\n".join(lines)


def _run_start(text: str) -> int:
    """Where the same few characters begin that fill the end of the text; else its end."""
    tail = text[-_RUN:]
    if len(tail) < _RUN or "\n" in tail:
        return len(text)
    unit = next((n for n in range(1, _UNIT + 1) if tail[n:] == tail[:-n]), None)
    if unit is None:
        return len(text)
    start = len(text) - _RUN
    while start and text[start - 1] == text[start - 1 + unit]:
        start -= 1
    return start
