"""A completion that leaves the code whole: all of it, the longest part that does so, or nothing."""

import re
from collections.abc import Iterator

from lsp_server.completion.judge import Judge
from lsp_server.completion.overlap import num_closers, replaced_in_line
from lsp_server.completion.processed import Processed
from lsp_server.completion.surroundings import Surroundings
from lsp_server.reasons import Reason

_MOST_CLOSERS = 3  # behind the cursor that are tried one by one
_JOINTS = ",.=+-*/%&|^<?"  # something has to follow, as the block does behind a header
_TOKEN = re.compile(r"\w+|[^\w\s]")


def unbroken(made: Processed, around: Surroundings, judge: Judge) -> Processed:
    """`made`, cut back to the longest beginning with which nothing is newly broken."""
    if made.reason is not None:
        return made
    if judge.accepts(made.text, made.replaced_chars_after_cursor):
        return made
    by_tokens = judge.knows_language or bool(around.rest.strip())
    for text in _beginnings(made.text, by_tokens=by_tokens):
        for replaced in _replacements(text, around):
            if judge.accepts(text, replaced):
                return Processed(text, replaced)
    return Processed(reason=Reason.BREAKS_CODE)


def _beginnings(text: str, *, by_tokens: bool) -> Iterator[str]:
    """The text, then fewer and fewer of its lines, then of the first line's tokens.

    Half a line is of use where something stands behind it, or the parser says that it is whole.
    """
    lines = text.split("\n")
    for count in range(len(lines), 0, -1):
        if lines[count - 1].strip():
            yield "\n".join(lines[:count])
    if not by_tokens:
        return
    for end in reversed([match.end() for match in _TOKEN.finditer(lines[0])]):
        is_loose = lines[0][end - 1] in _JOINTS or lines[0][end:].lstrip().startswith("{")
        if end < len(lines[0]) and not is_loose:
            yield lines[0][:end]


def _replacements(text: str, around: Surroundings) -> list[int]:
    """How many characters behind the cursor the text may replace, the likeliest first."""
    likeliest = replaced_in_line(text, around)
    others = range(min(num_closers(around.rest), _MOST_CLOSERS) + 1)
    return [likeliest, *(count for count in others if count != likeliest)]
