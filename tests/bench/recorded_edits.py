"""Next edits that other programs recorded: the prompt of each, and how its answer is read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from typing import Any

from engine.edits.edit_prompt import EditedDocument, EditFormat, RefusedEditError
from engine.edits.sweep import sweep_prompt
from engine.edits.zeta import zeta_1_prompt, zeta_2_prompt
from engine.request import EditOutcome, EditTask, PastEdit

_ALL = 10_000  # lines of a block that is the whole document, as the recording client's are


@dataclass(frozen=True, slots=True)
class _Form:
    """Where a recorded prompt has its block, and how an answer is read."""

    before: str
    behind: str
    cursor: str
    lead: str  # the answer's first line, if it is no line of the block
    format: EditFormat


_FORMS = {  # by the first part of a recorded model's name
    "sweep": _Form(
        "<|file_sep|>current/",
        "<|file_sep|>updated/",
        "<|cursor|>",
        "",
        # The client begins each answer with the lines above the cursor, as the larger models want.
        partial(sweep_prompt, around=_ALL),
    ),
    "zeta-2": _Form("<<<<<<< CURRENT\n", "=======\n", "<|user_cursor|>", "", zeta_2_prompt),
    "zeta": _Form(
        "<|editable_region_start|>\n",
        "\n<|editable_region_end|>",
        "<|user_cursor_is_here|>",
        "<|editable_region_start|>\n",
        zeta_1_prompt,
    ),
}


@dataclass(frozen=True, slots=True)
class RecordedEdit:
    """A recorded prompt and its answer. `shown` is the block, with the sign of the cursor."""

    model: str
    kind: str
    prompt: str
    completion: str
    shown: str
    begun: str  # of the answer, by the prompt

    @property
    def block(self) -> str:
        """The document."""
        return self.shown.replace(_FORMS[self.kind].cursor, "")

    @property
    def copied(self) -> str:
        """The text that the answer rewrites."""
        return _FORMS[self.kind].lead + self.block.removeprefix(self.begun)

    @property
    def answered(self) -> list[str]:
        """The document's lines as the answer, taken literally, has them."""
        form = _FORMS[self.kind]
        text = self.begun + self.completion.removeprefix(form.lead).replace(form.cursor, "")
        return text.rstrip("\n").split("\n")

    def read(self, history: Sequence[PastEdit]) -> EditOutcome:
        """Return the change that our reader finds in the answer. Raises RefusedEditError."""
        before = self.shown.partition(_FORMS[self.kind].cursor)[0]
        row, column = before.count("\n"), len(before.rpartition("\n")[2])
        task, lines = EditTask(history=tuple(history)), self.block.split("\n")
        prompt = _FORMS[self.kind].format(EditedDocument("a", lines, row, column, task))
        return prompt.read(self.completion, False)  # noqa: FBT003 - as an EditPrompt reads


def recorded_edits(recordings: Mapping[str, Sequence[Any]]) -> Iterator[list[RecordedEdit]]:
    """Yield a scenario's answers, model by model in the order of their requests."""
    for model, some in recordings.items():
        kind = next(name for name in _FORMS if model.startswith(name))
        yield [_recorded(model, kind, one["prompt"], one["completion"]) for one in some]


def _recorded(model: str, kind: str, prompt: str, completion: str) -> RecordedEdit:
    form, begun = _FORMS[kind], ""
    shown, _, rest = prompt.rpartition(form.before)[2].rpartition(form.behind)
    if kind == "sweep":  # both headers go on with the path, and the answer begins in the prompt
        shown, begun = (text.partition("\n")[2] for text in (shown, rest))
    return RecordedEdit(model, kind, prompt, completion, shown, begun)


def verdict(
    one: RecordedEdit, following: RecordedEdit | None, history: Sequence[PastEdit] = ()
) -> str:
    """Say what our reader makes of an answer.

    `applied`: the client changed the buffer so before its following request, perhaps by a part.
    `as answered`: the client's change is unknown, and ours has the answer's lines. Else it is
    `differs`, or a refusal with its reason.
    """
    try:
        edit = one.read(history)
    except RefusedEditError as refused:
        return f"refused: {refused.code}"
    lines = one.block.split("\n")
    ours = [*lines[: edit.first], *edit.lines, *lines[edit.end :]]
    if following is not None and following.block != one.block:
        is_ours = _changes(lines, following.block.split("\n")) <= _changes(lines, ours)
        return "applied" if is_ours else "differs"
    is_literal = [*filter(str.strip, ours)] == [*filter(str.strip, one.answered)]
    return "as answered" if is_literal else "differs"


def _changes(old: Sequence[str], new: Sequence[str]) -> Counter[str]:
    """Count the lines that were deleted and added, but blank ones."""
    diff = [*unified_diff(old, new, n=0, lineterm="")][2:]
    return Counter(line for line in diff if line[1:].strip() and not line.startswith("@@"))
