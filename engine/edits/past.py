"""The user's last edits in a prompt: how the text was before them."""

from collections.abc import Iterator, Sequence

from engine.edits.edit_prompt import EditedDocument
from engine.request import PastEdit


def telling_edits(document: EditedDocument) -> list[PastEdit]:
    """Return the edits that changed more than white space around their text, oldest first."""
    return [one for one in document.task.history if _text(one.old) != _text(one.new)]


def lines_before_edits(document: EditedDocument) -> list[str]:
    """Return the document's lines as they were before all its edits that can be undone."""
    lines = list(document.lines)
    for edit in reversed(document.task.history):
        if edit.path != document.path:
            continue
        end = edit.line + len(edit.new)
        if tuple(lines[edit.line : end]) != edit.new or edit.line > len(lines):
            break
        lines[edit.line : end] = edit.old
    return lines


def earlier_texts(document: EditedDocument, text: str) -> Iterator[str]:
    """Yield states of lines of the document, each ended by LF, with one more edit undone.

    As Sweep's server does: each edit is looked for by its text, first with a line around it.
    """
    for edit in reversed(telling_edits(document)):
        if edit.path != document.path:
            continue
        above, below = edit.above[-1:], edit.below[:1]
        for old, new in (
            ((*above, *edit.old, *below), (*above, *edit.new, *below)),
            (edit.old, edit.new),
        ):
            if _text(new) and _ended(new) in text:
                text = text.replace(_ended(new), _ended(old), 1)
                break
        else:
            return
        yield text


def hunk(edit: PastEdit) -> str:
    """Return an edit as a hunk of a unified diff, without a line end behind it."""
    first = edit.line - len(edit.above) + 1
    num_around = len(edit.above) + len(edit.below)
    old, new = num_around + len(edit.old), num_around + len(edit.new)
    parts = ((" ", edit.above), ("-", edit.old), ("+", edit.new), (" ", edit.below))
    lines = [f"{sign}{line}" for sign, part in parts for line in part]
    return "\n".join([f"@@ -{first},{old} +{first},{new} @@", *lines])


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip()


def _ended(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
