"""From what the model wrote to what is worth showing: the steps in their order."""

import re
from collections.abc import Callable

from lsp_server.completion.indenting import indented
from lsp_server.completion.judge import Judge, LineJudge
from lsp_server.completion.overlap import (
    not_only_next,
    replaced_in_line,
    without_comment,
    without_next,
    without_surplus,
)
from lsp_server.completion.processed import Processed
from lsp_server.completion.surroundings import Surroundings
from lsp_server.completion.trimming import in_scope, plain, without_repetition
from lsp_server.completion.unbroken import unbroken
from lsp_server.reasons import Reason

Step = Callable[[str, Surroundings], str | Reason]

_FIRST_STEPS: tuple[Step, ...] = (plain, in_scope, without_repetition, not_only_next)
_BRACKETS_ONLY = re.compile(r"""[\s()\[\]{}<>"'`;,]*""")


def process(text: str, around: Surroundings, judge: Judge | None = None) -> Processed:
    """Trim and mend a finished completion. Line ends stay LF.

    `judge` knows the text better than the cursor's line does.
    """
    made = trimmed(text, around)
    if around.is_free:
        return made
    made = unbroken(made, around, judge or LineJudge(around))
    return made if made.reason else _unless_worthless(made, around)


def trimmed(text: str, around: Surroundings) -> Processed:
    """A completion without what it should not have said; it may still leave code broken."""
    for step in _FIRST_STEPS:
        outcome = step(text, around)
        if isinstance(outcome, Reason):
            return Processed(reason=outcome)
        text = outcome
    replaced = replaced_in_line(text, around)
    if around.rest[replaced:].strip():
        plainer = without_comment(text, around)
        closers = replaced_in_line(plainer, around)
        if closers > replaced:  # else it may be no comment: prose in a string has such marks, too
            text, replaced = plainer, closers
    return _finished(text, around, replaced)


def _finished(text: str, around: Surroundings, replaced: int) -> Processed:
    """The steps that depend on what the text replaces."""
    outcome: str | Reason = text
    ends_line = not around.rest[replaced:].strip()
    if ends_line:
        outcome = without_next(text, around)
    if not isinstance(outcome, Reason):
        outcome = without_surplus(outcome, around, replaced)
    if isinstance(outcome, Reason):
        return Processed(reason=outcome)
    text = indented(outcome, around)
    text = text.rstrip() if ends_line else text
    return _unless_worthless(Processed(text, replaced), around)


def _unless_worthless(made: Processed, around: Surroundings) -> Processed:
    """`made`, or why it is not worth showing."""
    text, replaced, _ = made
    if not text.strip():
        return Processed(reason=Reason.BLANK)
    if text.rstrip() == around.rest[:replaced].rstrip():
        return Processed(reason=Reason.ONLY_REPEATS_REST)
    is_empty = _BRACKETS_ONLY.fullmatch(text) is not None
    return Processed(reason=Reason.BRACKET_ONLY) if is_empty else made
