"""From what the model wrote to what is worth showing: the steps in their order."""

import re
from collections.abc import Callable
from typing import NamedTuple

from lsp_server.completion.indenting import indented
from lsp_server.completion.overlap import (
    not_only_next,
    replaced_in_line,
    without_comment,
    without_next,
    without_surplus,
)
from lsp_server.completion.surroundings import Surroundings
from lsp_server.completion.trimming import in_scope, plain, unrepeated
from lsp_server.reasons import Reason

Step = Callable[[str, Surroundings], str | Reason]

_FIRST_STEPS: tuple[Step, ...] = (plain, in_scope, unrepeated, not_only_next)
_BRACKETS_ONLY = re.compile(r"""[\s()\[\]{}<>"'`;,]*""")


class Processed(NamedTuple):
    """Text to insert at the cursor in place of characters behind it; or why there is none."""

    text: str = ""
    replaced_chars_after_cursor: int = 0
    reason: Reason | None = None


def process(text: str, around: Surroundings) -> Processed:
    """Trim and mend a finished completion. Line ends stay LF."""
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
    reason = _worthless(text, around, replaced)
    return Processed(text, replaced) if reason is None else Processed(reason=reason)


def _worthless(text: str, around: Surroundings, replaced: int) -> Reason | None:
    """Why a text is not worth showing."""
    if not text.strip():
        return Reason.BLANK
    if text.rstrip() == around.rest[:replaced].rstrip():
        return Reason.ONLY_REPEATS_REST
    return Reason.BRACKET_ONLY if _BRACKETS_ONLY.fullmatch(text) else None
