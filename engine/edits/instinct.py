"""Prompts of Continue's model Instinct, chats in Qwen's form, and the reader of its answers.

The texts of the messages are those of Continue (`core/nextEdit`), which is under Apache-2.0.
"""

from engine.edits.block import Block, lines_of
from engine.edits.edit_prompt import EditedDocument, EditPrompt, fitting
from engine.edits.past import hunk

_ABOVE, _BELOW = 1, 5  # lines that may change, around the cursor's
_AROUND = 25  # lines shown above and below the cursor
_START, _END = "<|editable_region_start|>", "<|editable_region_end|>"
_CURSOR = "<|user_cursor_is_here|>"
_SYSTEM = """\
You are Instinct, an intelligent next-edit predictor developed by Continue.dev. Your role as an AI \
agent is to help developers complete their code tasks by predicting the next edit that they will \
make within the section of code marked by <|editable_region_start|> and <|editable_region_end|> \
tags.

You have access to the following information to help you make informed suggestions:

- Context: In the section marked "### Context", there are context items from potentially relevant \
files in the developer's codebase. Each context item consists of a <|context_file|> marker, the \
filepath, a <|snippet|> marker, and then some content from that file, in that order. Keep in mind \
that not all of the context information may be relevant to the task, so use your judgement to \
determine which parts to consider.
- User Edits: In the section marked "### User Edits:", there is a record of the most recent changes \
made to the code, helping you understand the evolution of the code and the developer's intentions. \
These changes are listed from most recent to least recent. It's possible that some of the edit diff \
history is entirely irrelevant to the developer's change. The changes are provided in a unified \
line-diff format, i.e. with pluses and minuses for additions and deletions to the code.
- User Excerpt: In the section marked "### User Excerpt:", there is a filepath to the developer's \
current file, and then an excerpt from that file. The <|editable_region_start|> and \
<|editable_region_end|> markers are within this excerpt. Your job is to rewrite only this editable \
region, not the whole excerpt. The excerpt provides additional context on the surroundings of the \
developer's edit.
- Cursor Position: Within the user excerpt's editable region, the <|user_cursor_is_here|> flag \
indicates where the developer's cursor is currently located, which can be crucial for understanding \
what part of the code they are focusing on. Do not produce this marker in your output; simply take \
it into account.

Your task is to predict and complete the changes the developer would have made next in the editable \
region. The developer may have stopped in the middle of typing. Your goal is to keep the developer \
on the path that you think they're following. Some examples include further implementing a class, \
method, or variable, or improving the quality of the code. Make sure the developer doesn't get \
distracted by ensuring your suggestion is relevant. Consider what changes need to be made next, if \
any. If you think changes should be made, ask yourself if this is truly what needs to happen. If \
you are confident about it, then proceed with the changes.

# Steps

1. **Review Context**: Analyze the context from the resources provided, such as recently viewed \
snippets, edit history, surrounding code, and cursor location.
2. **Evaluate Current Code**: Determine if the current code within the tags requires any \
corrections or enhancements.
3. **Suggest Edits**: If changes are required, ensure they align with the developer's patterns and \
improve code quality.
4. **Maintain Consistency**: Ensure indentation and formatting follow the existing code style.

# Output Format

- Provide only the revised code within the tags. Do not include the tags in your output.
- Ensure that you do not output duplicate code that exists outside of these tags.
- Avoid undoing or reverting the developer's last change unless there are obvious typos or errors."""
_TASK = (
    "Reference the user excerpt, user edits, and the snippets to understand the developer's intent. "
    "Update the editable region of the user excerpt by predicting and completing the changes they "
    "would have made next. This may be a deletion, addition, or modification of code."
)


def instinct_prompt(document: EditedDocument) -> EditPrompt:
    """Ask Instinct. Raises RefusedEditError."""
    row, marked = document.row, document.marked
    first, end = max(0, row - _ABOVE), row + _BELOW + 1
    block = Block.of(document, first, end, (_START, _END, _CURSOR))
    above = "".join(f"{line}\n" for line in document.lines[max(0, row - _AROUND) : first])
    below = "".join(f"\n{line}" for line in document.lines[end : row + _AROUND + 1])
    excerpt = f"{marked(above)}{_START}\n{block.shown(_CURSOR)}\n{_END}{marked(below)}"
    user = (
        f"{_TASK}\n\n### Context:\n{_context(document)}\n\n"
        f"### User Edits:\n\n{marked(_edits(document))}\n\n"
        f"### User Excerpt:\n{marked(document.path)}\n\n{excerpt}```\n### Response:"
    )
    text = (
        f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    return block.prompt(text, (_END,), _answered)


def _context(document: EditedDocument) -> str:
    marked = document.marked
    snippets = (
        f"<|context_file|>: {marked(one.path)}\n<|snippet|>\n{marked(one.text)}"
        for one in document.snippets
    )
    return "\n".join(fitting(snippets, document.room // 4))


def _edits(document: EditedDocument) -> str:
    """The last edits, the newest first."""
    edits = (
        f'User edited file "{one.path}"\n\n```diff\n{hunk(one)}\n```'
        for one in reversed(document.task.history)
    )
    return "\n".join(fitting(edits, document.room // 4))


def _answered(answer: str) -> list[str]:
    text = answer.replace(_CURSOR, "").removeprefix(f"{_START}\n").partition(_END)[0]
    return lines_of(text)
