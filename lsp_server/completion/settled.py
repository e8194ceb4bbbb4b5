"""How much of a text that is still being written can be shown: what the finished one begins with.

Whole lines, or words of the first line; and nothing that the steps of `postprocess` may take back
once they know how the text goes on.
"""

import re

from engine.stopping.confidence import word_start
from engine.stopping.lines import Written
from engine.stopping.repetition import repetition_held
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.overlap import repeat_held, surplus_held
from lsp_server.completion.postprocess import Processed, process
from lsp_server.completion.syntax_judge import Judge

_BEGUN_FENCE = re.compile(r"\s*`")


def beginning(text: str, context: CursorContext, judge: Judge, *, ends_word: bool) -> Processed:
    """What can be shown of a text that goes on; `judge` is as if it had not been asked.

    It has to be whole, since the finished text is cut back to what is where it breaks code. Only the
    head of a block may stand alone for a while.
    """
    kept = settled(text, context, ends_word=ends_word)
    made = process(kept, context, judge, goes_on=has_line(text))
    judge.prepare()
    return made


def settled(text: str, context: CursorContext, *, ends_word: bool) -> str:
    """The beginning of what the model has written that will stay, without blanks at its end.

    `ends_word`: no word goes on behind `text`. Where something stands behind the cursor what is
    written next decides how much of that it replaces: there nothing is settled. Nor is anything
    while the text may be the cursor's line said again.
    """
    if context.rest.strip() or context.before.lstrip().startswith(text.strip() or "\n"):
        return ""
    lines = text.rpartition("\n")[0]
    if lines.strip():
        return _held(lines, context, is_growing=False)
    if _BEGUN_FENCE.match(context.before + text):
        return ""
    words = text if ends_word else text[: word_start(text)]
    return _held(words, context, is_growing=True)


def has_line(text: str) -> bool:
    """The first line that is not blank has ended."""
    return bool(text.rpartition("\n")[0].strip())


def _held(text: str, context: CursorContext, *, is_growing: bool) -> str:
    written = Written.of(text if is_growing else f"{text}\n")
    held = min(
        repetition_held(written),
        repeat_held(text, context, is_growing=is_growing),
        surplus_held(text, context),
    )
    return text[:held].rstrip()
