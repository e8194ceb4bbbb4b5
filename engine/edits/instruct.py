"""Prompts for the next edit to a model that was not trained for it, and the reader of its answers.

The chat is the one that Sweep asked plain models in, in Qwen's form (kevinlu1248.github.io/blog/oss-next-edit).
"""

from engine.edits.block import lines_of
from engine.edits.edit_prompt import EditedDocument, EditPrompt
from engine.edits.sweep_context import block_around, cut, shown_changes, shown_file

_AROUND = 10  # lines of the block above and below the cursor's
_CURSOR, _END = "<|cursor|>", "</code_block>"
_TASK = (
    "Rewrite <code_block> to help the user finish writing their changes. Respond with only the "
    "updated contents of the <code_block>, wrapped in the XML tags."
)
_BEGUN = "I have inferred the user's intentions and will fully implement the user's changes."


def instruct_prompt(document: EditedDocument) -> EditPrompt:
    """Ask in a chat about a block of code, whose answer has begun. Raises RefusedEditError."""
    block = block_around(document, _AROUND, _AROUND, (_END, _CURSOR))
    file = document.marked(cut(shown_file(document).removesuffix("\n")))
    text = (
        "<|im_start|>user\nHere are contents of the user's file before any changes were made:\n"
        f"<current_file>\n{file}\n</current_file>\n\n"
        "The user recently made the following changes:\n\n"
        f"<recent_changes>\n{shown_changes(document)}\n</recent_changes>\n\n"
        "Here's the section to edit:\n\n"
        f"<code_block>\n{block.shown(_CURSOR)}\n{_END}\n\n{_TASK}<|im_end|>\n"
        f"<|im_start|>assistant\n{_BEGUN}\n\n<code_block>\n"
    )
    return block.prompt(text, (_END,), _answered)


def _answered(answer: str) -> list[str]:
    return lines_of(answer.replace(_CURSOR, "").partition(_END)[0])
