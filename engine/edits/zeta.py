"""Prompts of Zed's models Zeta 1, Zeta 2 and Zeta 2.1, and the readers of their answers.

The forms of Zeta 2 and 2.1 are those that Zed calls `V0211SeedCoder` and `V0318SeedMultiRegions`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from engine.edits.block import Block, check_size, lines_of
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    LineEdit,
    Mark,
    Refusal,
    RefusedEditError,
    fitting,
)
from engine.edits.markers import between_markers, with_markers
from engine.edits.past import changed_block, hunk
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


class Zeta1Format:
    """The form of Zeta 1."""

    def prompt(self, document: EditedDocument, marked: Mark = str, /) -> EditPrompt:
        """Lay out a prompt. Raises RefusedEditError."""
        check_size(document.lines)
        region = Region.around(document, (_START, _END))
        edits = "\n\n".join(
            f'User edited "{marked(one.path)}":\n```diff\n{marked(hunk(one))}\n```'
            for one in document.task.history[-_EDITS:]
        )
        start = "" if region.shown_from else "<|start_of_file|>\n"
        excerpt = (
            f"```{marked(document.path)}\n{start}{marked(region.above)}{_START}\n"
            f"{region.block.shown(_CURSOR_HERE, marked)}\n{_END}{marked(region.below)}\n```"
        )
        return EditPrompt(
            text=f"### Instruction:\n{_TASK}\n\n### User Edits:\n\n{edits}\n\n"
            f"### User Excerpt:\n\n{excerpt}\n\n### Response:\n",
            block=f"{_START}\n{region.block.text}",
            prefill="",
            stops=(f"\n{_END}",),
            read=partial(_read, document, region.block, _region_answered),
        )


@dataclass(frozen=True, slots=True)
class Zeta2Format:
    """The form of Zeta 2, or of 2.1, whose answers stand between two of the block's markers."""

    has_markers: bool

    def prompt(self, document: EditedDocument, marked: Mark = str, /) -> EditPrompt:
        """Lay out a prompt. Raises RefusedEditError."""
        check_size(document.lines)
        region = Region.around(document, ("<|marker_",) if self.has_markers else (_UPDATED,))
        block = region.block
        if self.has_markers:
            current, copied = f"{with_markers(block, marked, _CURSOR)}\n", with_markers(block)
        else:
            shown, copied = block.shown(_CURSOR, marked), block.text
            current = f"<<<<<<< CURRENT\n{_ended(shown)}=======\n"
        suffix = f"<[fim-suffix]>{_ended(marked(region.below))}<[fim-prefix]>"
        path = f"<filename>{marked(document.path)}\n{marked(region.above)}"
        room = min(_PROMPT_CHARS, document.room) - len(suffix) - len(path) - len(current)
        return EditPrompt(
            text=f"{suffix}{_context(document, marked, room)}{path}{current}<[fim-middle]>",
            block=copied,
            prefill="",
            stops=() if self.has_markers else (_UPDATED,),
            read=partial(
                _read, document, block, between_markers if self.has_markers else _answered
            ),
        )


def _context(document: EditedDocument, marked: Mark, room: int) -> str:
    """Texts of other files, best first, and the last edits, which come first if room is scarce."""
    edits = list[str]()
    for edit in document.task.history[: -_EDITS - 1 : -1]:
        path = marked(edit.path)
        edits.append(f"--- a/{path}\n+++ b/{path}\n{marked(hunk(edit))}\n")
    edits = fitting(edits, room)
    others = (
        f"<filename>{marked(one.path)}\n{_ended(marked(one.text))}" for one in document.snippets
    )
    told = "".join(fitting(others, room - sum(map(len, edits))))
    history = f"<filename>edit_history\n{''.join(reversed(edits))}\n" if edits else ""
    return told + ("\n" if told else "") + history


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _read(
    document: EditedDocument,
    block: Block,
    answered: Callable[[Block, str], Sequence[str]],
    answer: str,
    is_cut: bool,  # noqa: FBT001 -- as EditPrompt.read is called
) -> LineEdit:
    if is_cut:
        raise RefusedEditError(Refusal.TOKEN_LIMIT)
    if answer.strip().startswith(_NO_EDITS):
        raise RefusedEditError(Refusal.NO_CHANGE)
    text = answer.replace(_CURSOR, "").replace(_CURSOR_HERE, "")
    return changed_block(document, block, answered(block, text))


def _answered(_block: Block, answer: str) -> list[str]:
    return lines_of(answer.removesuffix("\n").removesuffix(_UPDATED))


def _region_answered(_block: Block, answer: str) -> list[str]:
    before, start, rest = answer.partition(f"{_START}\n")
    if not start or before.strip() or _START in rest:
        raise RefusedEditError(Refusal.MALFORMED)
    return lines_of(rest.partition(f"\n{_END}")[0])
