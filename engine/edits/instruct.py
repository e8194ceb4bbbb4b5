"""Prompts for the next edit to a model that was not trained for it, and the reader of its answers.

The chat is the one that Sweep asked plain models in, in Qwen's form (kevinlu1248.github.io/blog/oss-next-edit).
"""

from functools import partial

from engine.edits.block import Block, check_size, lines_of
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    LineEdit,
    Mark,
    Refusal,
    RefusedEditError,
)
from engine.edits.past import changed_block
from engine.edits.sweep_context import block_around, cut, shown_changes, shown_file

_AROUND = 10  # lines of the block above and below the cursor's
_CURSOR, _END = "<|cursor|>", "</code_block>"
_TASK = (
    "Rewrite <code_block> to help the user finish writing their changes. Respond with only the "
    "updated contents of the <code_block>, wrapped in the XML tags."
)
_BEGUN = "I have inferred the user's intentions and will fully implement the user's changes."


class InstructFormat:
    """A chat about a block of code, whose answer has begun."""

    def prompt(self, document: EditedDocument, marked: Mark = str, /) -> EditPrompt:
        """Lay out a chat. Raises RefusedEditError."""
        check_size(document.lines)
        block = block_around(document, _AROUND, _AROUND, (_END,))
        file = cut(marked(shown_file(document).removesuffix("\n")))
        text = (
            "<|im_start|>user\nHere are contents of the user's file before any changes were made:\n"
            f"<current_file>\n{file}\n</current_file>\n\n"
            "The user recently made the following changes:\n\n"
            f"<recent_changes>\n{shown_changes(document, marked)}\n</recent_changes>\n\n"
            "Here's the section to edit:\n\n"
            f"<code_block>\n{block.shown(_CURSOR, marked)}\n{_END}\n\n{_TASK}<|im_end|>\n"
            f"<|im_start|>assistant\n{_BEGUN}\n\n<code_block>\n"
        )
        return EditPrompt(text, block.text, "", (_END,), partial(_read, document, block))


def _read(
    document: EditedDocument,
    block: Block,
    answer: str,
    is_cut: bool,  # noqa: FBT001 -- as EditPrompt.read is called
) -> LineEdit:
    if is_cut:
        raise RefusedEditError(Refusal.TOKEN_LIMIT)
    return changed_block(document, block, lines_of(answer.replace(_CURSOR, "").partition(_END)[0]))
