"""The chat with a model that was not trained for next edits."""

from engine.edits.edit_prompt import EditedDocument
from engine.edits.instruct import instruct_prompt
from engine.request import EditOutcome, EditTask, PastEdit
from tests.support.edit_answers import read

RENAMED = PastEdit("circle.py", 0, ("def area(r):",), ("def area(radius):",))
ASKED = EditedDocument(
    "circle.py",
    ["def area(radius):", "    return 3 * r * r", ""],
    1,
    15,
    EditTask(history=(RENAMED,)),
)


def test_an_instruct_model_is_asked_to_finish_the_users_changes():
    assert (
        instruct_prompt(ASKED).text
        == """\
<|im_start|>user
Here are contents of the user's file before any changes were made:
<current_file>
def area(r):
    return 3 * r * r
</current_file>

The user recently made the following changes:

<recent_changes>
circle.py:1:1
original:
def area(r):
updated:
def area(radius):
</recent_changes>

Here's the section to edit:

<code_block>
def area(radius):
    return 3 * <|cursor|>r * r
</code_block>

Rewrite <code_block> to help the user finish writing their changes. Respond with only the updated \
contents of the <code_block>, wrapped in the XML tags.<|im_end|>
<|im_start|>assistant
I have inferred the user's intentions and will fully implement the user's changes.

<code_block>
"""
    )


def test_its_answer_ends_with_the_block():
    prompt = instruct_prompt(ASKED)
    answer = "def area(radius):\n    return 3 * radius * radius\n</code_block>\nDone."
    edit = EditOutcome(1, 2, ("    return 3 * radius * radius",))
    assert read(prompt, answer) == edit
    assert read(prompt, answer.partition("</code_block>")[0]) == edit
