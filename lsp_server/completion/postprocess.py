"""Turns the model's text into a suggestion worth showing, step by step."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from engine.text.brackets import PARTNERS, balance
from engine.text.lines import last_line, leading_space
from engine.text.repetition import unrepeated
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.indenting import indented
from lsp_server.completion.judge import READERS, LineJudge
from lsp_server.completion.overlap import (
    not_only_next,
    num_closers,
    replaced_in_line,
    without_comment,
    without_next,
    without_start,
    without_surplus,
)
from lsp_server.completion.suggestions import Suggestion
from lsp_server.completion.syntax_judge import SyntaxJudge
from lsp_server.completion.trimming import in_scope
from lsp_server.prompt.place import opens_block
from lsp_server.reasons import Reason

Step = Callable[[str, CursorContext], str]

# In order, each with the reason to report if it leaves nothing.
_FIRST_STEPS: tuple[tuple[Step, Reason], ...] = (
    (without_start, Reason.REPEATS_ITSELF),
    (in_scope, Reason.LEFT_SCOPE),
    (lambda text, _context: unrepeated(text), Reason.REPEATS_ITSELF),
    (not_only_next, Reason.ONLY_REPEATS_NEXT_LINES),
)
_BRACKETS_ONLY = re.compile(r"""[\s()\[\]{}<>"'`;,]*""")
_MOST_CLOSERS = 3  # closing characters after the cursor that are tried one by one
_JOINTS = (*",.=+-*/%&|^<?", "=>", "->")  # more text has to follow these
_TOKEN = re.compile(r"\w+|[^\w\s]")


def process(text: str, judge: LineJudge, *, is_finished: bool = True) -> Suggestion | Reason:
    """Trim and mend a completion, or return why nothing is shown. Line ends stay LF.

    While the host writes on, a text that breaks code is not cut, but waits for the rest.
    """
    context = judge.context
    made = _trimmed(text, context)
    if isinstance(made, Reason) or context.is_free(made.text):
        return made
    judge.begin()
    made = _unbroken(made, judge, is_finished=is_finished)
    return made if isinstance(made, Reason) else _unless_worthless(made, context)


def _trimmed(text: str, context: CursorContext) -> Suggestion | Reason:
    """Cut unwanted text from a completion, which may still break code."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        return Reason.MODEL_SAID_NOTHING
    left = _after(_FIRST_STEPS, text, context)
    if isinstance(left, Reason):
        return left
    text, replaced = left, replaced_in_line(left, context)
    if context.rest[replaced:].strip():
        plainer = without_comment(text, context)
        closers = replaced_in_line(plainer, context)
        if closers > replaced:  # otherwise it may be no comment, but prose in a string
            text, replaced = plainer, closers
    ends_line = not context.rest[replaced:].strip()
    steps: list[tuple[Step, Reason]] = [
        (partial(without_surplus, replaced=replaced), Reason.BRACKET_ONLY)
    ]
    if ends_line:
        steps.insert(0, (without_next, Reason.ONLY_REPEATS_NEXT_LINES))
    left = _after(steps, text, context)
    if isinstance(left, Reason):
        return left
    text = indented(left, context)
    text = text.rstrip() if ends_line else text
    return _unless_worthless(Suggestion(text, replaced), context)


def _after(steps: Iterable[tuple[Step, Reason]], text: str, context: CursorContext) -> str | Reason:
    """Apply the steps, or return the reason of the first that leaves nothing."""
    for step, reason in steps:
        left = step(text, context)
        if text.strip() and not left.strip():
            return reason
        text = left
    return text


def _unless_worthless(made: Suggestion, context: CursorContext) -> Suggestion | Reason:
    text, replaced = made.text, made.replaced_chars_after_cursor
    if not text.strip():
        return Reason.BLANK
    if text.rstrip() == context.rest[:replaced].rstrip():
        return Reason.ONLY_REPEATS_REST
    return Reason.BRACKET_ONLY if _BRACKETS_ONLY.fullmatch(text) else made


def _unbroken(made: Suggestion, judge: LineJudge, *, is_finished: bool) -> Suggestion | Reason:
    """Cut a finished text back to the longest beginning that breaks no code."""
    context = judge.context
    if judge.accepts(made.text, made.replaced_chars_after_cursor):
        return made
    if not is_finished:
        return Reason.BREAKS_CODE
    by_tokens = (
        isinstance(judge, SyntaxJudge) or context.rest.strip() or context.language_id in READERS
    )
    for beginning in _beginnings(made.text, by_tokens=bool(by_tokens)):
        for text in (beginning, *_closed(beginning, context)):
            for replaced in _replacements(text, context):
                if judge.accepts(text, replaced):
                    return Suggestion(text, replaced)
    return Reason.BREAKS_CODE


def _closed(text: str, context: CursorContext) -> Iterator[str]:
    """Yield a text of several lines with the ends of the block that it stops in, if that has text."""
    around = context.before + text
    found = balance(around, context.comment_signs)
    starts = [start for start in found.starts if start >= len(context.before)]
    if "\n" not in text or found.quote or not starts or not opens_block(around[: starts[-1] + 1]):
        return
    if not around[starts[-1] + 1 :].strip():
        return
    for start in reversed(starts):
        closer = PARTNERS[around[start]]
        space = leading_space(last_line(around[:start]))
        text += f"\n{space}{closer}" if closer == "}" else closer
    yield from (text, f"{text};")


def _beginnings(text: str, *, by_tokens: bool) -> Iterator[str]:
    """Yield the text, then fewer and fewer of its lines, then of the first line's tokens."""
    lines = text.split("\n")
    for count in range(len(lines), 0, -1):
        if lines[count - 1].strip():
            yield "\n".join(lines[:count])
    if not by_tokens:
        return
    for end in reversed([match.end() for match in _TOKEN.finditer(lines[0])]):
        is_loose = lines[0][:end].endswith(_JOINTS) or lines[0][end:].lstrip().startswith("{")
        if end < len(lines[0]) and not is_loose:
            yield lines[0][:end]


def _replacements(text: str, context: CursorContext) -> list[int]:
    """Return how many characters after the cursor the text may replace, likeliest first."""
    likeliest = replaced_in_line(text, context)
    others = range(min(num_closers(context.rest), _MOST_CLOSERS) + 1)
    return [likeliest, *(count for count in others if count != likeliest)]
