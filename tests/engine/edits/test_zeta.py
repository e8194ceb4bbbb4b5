"""Prompts of Zed's models, and what is made of answers to them.

The expected prompts are those of Zed's own code for the same documents.
"""

import re
from dataclasses import replace

import msgspec

from engine.config import StopRules
from engine.edits.edit_prompt import EditedDocument, Refusal
from engine.edits.zeta import zeta_1_prompt, zeta_2_prompt, zeta_21_prompt
from engine.request import EditOutcome, EditTask, PastEdit, Snippet
from engine.text.stopper import Stopper
from tests.support.edit_answers import read, refusal

CODE = """\
def area(radius):
    return PI * r ** 2


def rim(r):
    return 2 * PI * r
"""
RENAMED = PastEdit(
    path="src/circle.py",
    line=0,
    old=("def area(r):",),
    new=("def area(radius):",),
    below=("    return PI * r ** 2",),
)
HUNK = """\
@@ -1,2 +1,2 @@
-def area(r):
+def area(radius):
     return PI * r ** 2
"""


def document(code: str, row: int, column: int, *history: PastEdit) -> EditedDocument:
    return EditedDocument("src/circle.py", code.split("\n"), row, column, EditTask(history=history))


def test_zeta_gets_an_instruction_and_an_excerpt():
    prompt = zeta_1_prompt(document(CODE, 1, 15, RENAMED))
    head, _, edits = prompt.text.partition("### User Edits:\n\n")
    assert head.startswith("### Instruction:\nYou are a code completion assistant")
    assert (
        edits
        == f"""\
User edited "src/circle.py":
```diff
{HUNK}```

### User Excerpt:

```src/circle.py
<|start_of_file|>
<|editable_region_start|>
def area(radius):
    return PI *<|user_cursor_is_here|> r ** 2


def rim(r):
    return 2 * PI * r

<|editable_region_end|>
```

### Response:
"""
    )


def test_zeta_2_gets_the_text_below_first_then_other_files_and_edits():
    asked = replace(document(CODE, 1, 15, RENAMED), snippets=(Snippet("pi.py", "PI = 3\n"),))
    assert (
        zeta_2_prompt(asked).text
        == f"""\
<[fim-suffix]>
<[fim-prefix]><filename>pi.py
PI = 3

<filename>edit_history
--- a/src/circle.py
+++ b/src/circle.py
{HUNK}
<filename>src/circle.py
<<<<<<< CURRENT
def area(radius):
    return PI *<|user_cursor|> r ** 2


def rim(r):
    return 2 * PI * r
=======
<[fim-middle]>"""
    )


def test_a_region_has_350_tokens_and_150_are_shown_around_it():
    lines = [f"line {number} = {number} of the text here" for number in range(120)]
    text = zeta_2_prompt(document("\n".join(lines), 60, 4)).text
    assert text.startswith("<[fim-suffix]>\nline 79 =")
    assert "line 86 = 86 of the text here\n<[fim-prefix]><filename>src/circle.py\nline 33 =" in text
    assert "\n<<<<<<< CURRENT\nline 41 =" in text
    assert "line 78 = 78 of the text here\n=======\n" in text


def test_zeta_21_gets_numbered_markers_between_blocks_of_lines():
    """A block does not begin with what closes another."""
    code = "".join(f"a{number}\n" for number in range(6)) + "\n}\n"
    code += "".join(f"b{number}\n" for number in range(18))
    text = zeta_21_prompt(document(code, 8, 0)).text
    assert text.startswith(
        "<[fim-suffix]>\n<[fim-prefix]><filename>src/circle.py\n<|marker_1|>a0\n"
    )
    assert "\n\n}\n<|user_cursor|><|marker_2|>b0\n" in text
    assert text.endswith("b15\n<|marker_3|>b16\nb17\n<|marker_4|>\n<[fim-middle]>")


def test_an_answer_replaces_the_region():
    asked = document(CODE, 1, 15, RENAMED)
    answer = CODE.replace("* r **", "* radius **")
    edit = EditOutcome(1, 2, ("    return PI * radius ** 2",))
    assert read(zeta_2_prompt(asked), answer) == edit
    assert read(zeta_2_prompt(asked), f"{answer}>>>>>>> UPDATED\n") == edit
    assert read(zeta_2_prompt(asked), answer.replace("** 2", "** 2<|user_cursor|>")) == edit
    marked = f"<|editable_region_start|>\n{answer}"
    assert read(zeta_1_prompt(asked), marked) == edit
    assert read(zeta_1_prompt(asked), f"{marked}\n<|editable_region_end|>\n```") == edit


def test_an_answer_replaces_what_stands_between_two_markers():
    lines = [f"x{number} = {number}" for number in range(20)]
    prompt = zeta_21_prompt(document("\n".join(lines), 0, 0))
    assert prompt.block.count("<|marker_") == 3
    start, end = "\n".join(lines[:16]), "\n".join([*lines[16:19], "x19 = 20"])
    edit = EditOutcome(19, 20, ("x19 = 20",))
    assert read(prompt, f"<|marker_2|>{end}<|marker_3|>") == edit
    assert read(prompt, f"<|marker_1|>{start}\n<|marker_2|>{end}\n<|marker_3|>") == edit
    assert read(prompt, "<|marker_1|><|marker_2|>") == EditOutcome(0, 16, ())


def test_an_answer_from_a_later_marker_on_goes_on_until_it_has_changed_a_line():
    lines = [f"x{number} = {number}" for number in range(20)]
    prompt = zeta_21_prompt(document("\n".join(lines), 0, 0))
    rules = msgspec.structs.replace(StopRules.verbatim(999), rejoins=True)
    stopper = Stopper(rules, "", "", copied=prompt.block)
    end = "\n".join([*lines[16:19], "x19 = 20"])
    assert not any(map(stopper.push, f"<|marker_2|>{end}\n<|marker_3|>"))


def test_each_refusal_has_its_reason():
    asked = document(CODE, 1, 15, RENAMED)
    answers = {
        "NO_EDITS\n": Refusal.NO_CHANGE,
        CODE: Refusal.NO_CHANGE,
        "": Refusal.EMPTY_ANSWER,
        CODE.replace("radius", "r"): Refusal.REVERT,
    }
    prompt = zeta_2_prompt(asked)
    assert {answer: refusal(prompt, answer) for answer in answers} == answers
    assert refusal(prompt, CODE.replace("rim", "edge"), is_cut=True) == Refusal.TOKEN_LIMIT
    assert refusal(zeta_1_prompt(asked), CODE.replace("rim", "edge")) == Refusal.MALFORMED
    marked = zeta_21_prompt(asked)
    assert refusal(marked, "<|marker_1|><|marker_1|>") == Refusal.NO_CHANGE
    for answer in ("x", "<|marker_1|>x", "<|marker_2|>x<|marker_1|>", "<|marker_1|>x<|marker_7|>"):
        assert refusal(marked, answer) == Refusal.MALFORMED


def test_the_oldest_edits_are_left_out_where_all_would_be_too_long():
    edits = [PastEdit(f"f{number}.py", 0, ("a",), ("b" * 3000,)) for number in range(9)]
    asked = document(CODE, 1, 15, *edits)
    for text in (zeta_2_prompt(asked).text, zeta_1_prompt(replace(asked, room=10_000)).text):
        assert re.findall(r"f\d\.py\b(?=\n@|\")", text) == ["f6.py", "f7.py", "f8.py"]
