"""Prompts of Zed's models Zeta 1, Zeta 2 and Zeta 2.1, and the readers of their answers.

The forms of Zeta 2 and 2.1 are those that Zed calls `V0211SeedCoder` and `V0318SeedMultiRegions`.
"""

from functools import partial

from engine.edits.block import Block, lines_of
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    Refusal,
    RefusedEditError,
    fitting,
)
from engine.edits.markers import between_markers, with_markers
from engine.edits.past import hunk
from engine.edits.region import Region

_EDITS = 6  # shown
_PROMPT_CHARS = 12_288  # of all: 4,096 tokens of 3 characters

_START, _END = "<|editable_region_start|>", "<|editable_region_end|>"
_CURSOR_HERE = "<|user_cursor_is_here|>"
_TASK = (
    "You are a code completion assistant and your task is to analyze user edits and then rewrite an "
    "excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking "
    "into account the cursor location."
)
_CURSOR, _UPDATED, _NO_EDITS = "<|user_cursor|>", ">>>>>>> UPDATED", "NO_EDITS"


def zeta_1_prompt(document: EditedDocument) -> EditPrompt:
    """Ask Zeta 1. Raises RefusedEditError."""
    region, marked = Region.around(document, (_START, _END, _CURSOR_HERE)), document.marked
    edits = fitting(
        (
            marked(f'User edited "{one.path}":\n```diff\n{hunk(one)}\n```')
            for one in document.task.history[: -_EDITS - 1 : -1]
        ),
        document.room - len(region.above) - len(region.below),
    )
    told = "\n\n".join(reversed(edits))
    start = "" if region.shown_from else "<|start_of_file|>\n"
    text = (
        f"### Instruction:\n{_TASK}\n\n### User Edits:\n\n{told}\n\n"
        f"### User Excerpt:\n\n```{marked(document.path)}\n{start}{marked(region.above)}{_START}\n"
        f"{region.block.shown(_CURSOR_HERE)}\n{_END}{marked(region.below)}\n```\n\n"
        "### Response:\n"
    )
    return region.block.prompt(
        text, (f"\n{_END}",), _region_answered, copied=f"{_START}\n{region.block.text}"
    )


def zeta_2_prompt(document: EditedDocument) -> EditPrompt:
    """Ask Zeta 2. Raises RefusedEditError."""
    region = Region.around(document, (_UPDATED, _CURSOR))
    current = f"<<<<<<< CURRENT\n{_ended(region.block.shown(_CURSOR))}=======\n"
    return region.block.prompt(
        _seed_coder_prompt(document, region, current), (_UPDATED,), _answered
    )


def zeta_21_prompt(document: EditedDocument) -> EditPrompt:
    """Ask Zeta 2.1, whose answers stand between two of the markers. Raises RefusedEditError."""
    region = Region.around(document, ("<|marker_", _CURSOR))
    current = f"{with_markers(region.block, _CURSOR)}\n"
    return region.block.prompt(
        _seed_coder_prompt(document, region, current),
        (),
        partial(_between_markers, region.block),
        copied=with_markers(region.block),
    )


def _seed_coder_prompt(document: EditedDocument, region: Region, current: str) -> str:
    suffix = f"<[fim-suffix]>{_ended(document.marked(region.below))}<[fim-prefix]>"
    path = f"<filename>{document.marked(document.path)}\n{document.marked(region.above)}"
    room = min(_PROMPT_CHARS, document.room) - len(suffix) - len(path) - len(current)
    return f"{suffix}{_context(document, room)}{path}{current}<[fim-middle]>"


def _context(document: EditedDocument, room: int) -> str:
    """Texts of other files, best first, and the last edits, which come first if room is scarce."""
    marked = document.marked
    edits = fitting(
        (
            marked(f"--- a/{one.path}\n+++ b/{one.path}\n{hunk(one)}\n")
            for one in document.task.history[: -_EDITS - 1 : -1]
        ),
        room,
    )
    others = (
        f"<filename>{marked(one.path)}\n{_ended(marked(one.text))}" for one in document.snippets
    )
    told = "".join(fitting(others, room - sum(map(len, edits))))
    history = f"<filename>edit_history\n{''.join(reversed(edits))}\n" if edits else ""
    return told + ("\n" if told else "") + history


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _without_cursor(answer: str) -> str:
    if answer.strip().startswith(_NO_EDITS):
        raise RefusedEditError(Refusal.NO_CHANGE)
    return answer.replace(_CURSOR, "").replace(_CURSOR_HERE, "")


def _answered(answer: str) -> list[str]:
    return lines_of(_without_cursor(answer).removesuffix("\n").removesuffix(_UPDATED))


def _between_markers(block: Block, answer: str) -> list[str]:
    return between_markers(block, _without_cursor(answer))


def _region_answered(answer: str) -> list[str]:
    before, start, rest = _without_cursor(answer).partition(f"{_START}\n")
    if not start or before.strip() or _START in rest:
        raise RefusedEditError(Refusal.MALFORMED)
    return lines_of(rest.partition(f"\n{_END}")[0])
