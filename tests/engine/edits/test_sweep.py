"""Sweep's prompts, and what is made of answers to them."""

from dataclasses import replace

import pytest

from engine.edits.edit_prompt import EditedDocument, Refusal, RefusedEditError
from engine.edits.sweep import small_sweep_prompt, sweep_prompt
from engine.request import Diagnostic, EditOutcome, EditTask, PastEdit, Snippet
from tests.support.edit_answers import read, refusal

CODE = """\
import math

class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.r ** 2

    def rim(self):
        return 2 * math.pi * self.r

unit = Circle(1)
"""
RENAMED = PastEdit(
    path="circle.py",
    line=3,
    old=("    def __init__(self, r):", "        self.r = r"),
    new=("    def __init__(self, radius):", "        self.radius = radius"),
    above=("class Circle:",),
    below=("",),
)


def document(code: str, row: int, column: int, *history: PastEdit) -> EditedDocument:
    return EditedDocument("circle.py", code.split("\n"), row, column, EditTask(history=history))


def changed(lines, edit: EditOutcome) -> list[str]:
    return [*lines[: edit.first], *edit.lines, *lines[edit.end :]]


def test_the_small_model_is_asked_as_by_the_server_of_its_maker():
    """Compared with the prompt of sweep-autocomplete 0.1.1 for the same document."""
    assert (
        small_sweep_prompt(document(CODE, 4, 28, RENAMED)).text
        == """\
<|file_sep|>circle.py
import math

class Circle:
    def __init__(self, r):
        self.r = r

    def area(self):
        return math.pi * self.r ** 2

    def rim(self):
        return 2 * math.pi * self.r

unit = Circle(1)

<|file_sep|>circle.py:3:5
original:
class Circle:
    def __init__(self, r):
        self.r = r
updated:
class Circle:
    def __init__(self, radius):
        self.radius = radius
<|file_sep|>original/circle.py:3:11
class Circle:
    def __init__(self, r):
        self.r = r

    def area(self):
        return math.pi * self.r ** 2

    def rim(self):
<|file_sep|>current/circle.py:3:11
class Circle:
    def __init__(self, radius):
        self.radius = radius<|cursor|>

    def area(self):
        return math.pi * self.r ** 2

    def rim(self):
<|file_sep|>updated/circle.py:3:11
class Circle:
"""
    )


def test_the_larger_models_see_more_and_begin_at_the_cursor():
    prompt = sweep_prompt(document(CODE, 4, 28, RENAMED))
    assert prompt.block == CODE.removesuffix("\n")
    assert prompt.text.endswith(f"<|file_sep|>updated/circle.py:1:13\n{prompt.prefill}")
    assert prompt.prefill.splitlines()[-1] == "    def __init__(self, radius):"


def test_the_answer_changes_only_what_differs():
    asked = document(CODE, 4, 28, RENAMED)
    prompt = small_sweep_prompt(asked)
    answer = f"{prompt.block}\n".removeprefix(prompt.prefill).replace("self.r **", "self.radius **")
    edit = read(prompt, answer)
    assert edit == EditOutcome(7, 8, ("        return math.pi * self.radius ** 2",))
    assert "\n".join(changed(asked.lines, edit)) == CODE.replace("self.r **", "self.radius **")


def test_each_refusal_has_its_reason():
    prompt = small_sweep_prompt(document(CODE, 4, 28, RENAMED))
    kept = prompt.block.removeprefix(prompt.prefill)
    six = "".join(f"    # {number}\n" for number in range(9))
    answers = {
        kept: Refusal.NO_CHANGE,
        f"{kept}\n": Refusal.NO_CHANGE,
        "": Refusal.EMPTY_ANSWER,
        "<|fim_middle|>": Refusal.SPECIAL_TOKEN,
        kept.replace("radius", "r"): Refusal.REVERT,
        kept.replace("\n\n", "\n", 1): Refusal.BLANK_LINES,
        kept.replace("        self", "        pass\n        self"): Refusal.INSERTION_ABOVE,
        six: Refusal.LARGE_CHANGE_ABOVE,
    }
    assert {answer: refusal(prompt, answer) for answer in answers} == answers
    assert refusal(prompt, kept.replace("area", "disc"), is_cut=True) == Refusal.TOKEN_LIMIT


def test_what_the_model_learned_to_write_behind_a_file_is_left_out():
    asked = document("x = 1\ny = 2\n", 1, 5)
    prompt = small_sweep_prompt(asked)
    assert refusal(prompt, "y = 2 No newline at end of file\n") == Refusal.NO_CHANGE
    assert read(prompt, "y = <|cursor|>3\n<|file_sep|>") == EditOutcome(1, 2, ("y = 3",))


def test_what_is_inserted_at_the_cursor_is_no_insertion_above_it():
    asked = document("class Text:\n    size = 1\n", 0, 0)
    edit = read(small_sweep_prompt(asked), "@frozen\nclass Text:\n    size = 1\n")
    assert edit == EditOutcome(0, 0, ("@frozen",))


def test_lines_added_behind_the_block_fill_the_blank_one_at_the_cursor():
    asked = document("def half(x):\n\n\nhalf(2)\n", 1, 0)
    prompt = small_sweep_prompt(asked)
    edit = read(prompt, "    return x / 2\n\nhalf(2)\n")
    assert changed(asked.lines, edit) == ["def half(x):", "    return x / 2", "", "half(2)", ""]
    end = document("def half(x):\n", 1, 0)
    edit = read(small_sweep_prompt(end), "    return x / 2\n")
    assert changed(end.lines, edit) == ["def half(x):", "    return x / 2", ""]


def test_a_blank_line_at_the_cursor_stays_when_another_line_changes():
    asked = document("x = 1\ny = 2\n", 2, 0)
    edit = read(small_sweep_prompt(asked), "y = 3\n")
    assert changed(asked.lines, edit) == ["x = 1", "y = 3", ""]


def test_a_long_file_is_shown_by_a_part_that_stays_while_the_cursor_moves():
    lines = [f"value_{number} = {number}" for number in range(1000)]
    near, nearer = (
        small_sweep_prompt(document("\n".join(lines), row, 0)).text for row in (500, 501)
    )
    assert near.split("\n<|file_sep|>")[0] == nearer.split("\n<|file_sep|>")[0]
    assert near.startswith("<|file_sep|>circle.py\nvalue_300 = 300\n")
    assert "value_600" not in near


def test_the_larger_models_see_fewer_lines_and_more_edits():
    """50 lines above and below, in steps of 40, and 10 edits."""
    lines = [f"value_{number} = {number}" for number in range(500)]
    edits = [PastEdit(f"f{number}.py", 0, ("a",), ("b",)) for number in range(12)]
    for row in (200, 239):
        text = sweep_prompt(document("\n".join(lines), row, 0, *edits)).text
        shown = text.split("<|file_sep|>")[1].split()
        assert (shown[1], shown[-1]) == ("value_150", "289")
        assert [f"f{number}.py:" in text for number in range(12)] == [False] * 2 + [True] * 10


def test_a_prompt_has_room_for_so_much_and_the_nearest_stays():
    lines = [f"value_{number} = {number}" for number in range(500)]
    edits = [PastEdit(f"f{number}.py", 0, ("a",), ("b" * 400,)) for number in range(6)]
    asked = replace(document("\n".join(lines), 300, 0, *edits), room=4000)
    text = small_sweep_prompt(asked).text
    assert len(text) < 4500
    assert "value_290 = 290\n" in text.split("<|file_sep|>")[1]
    assert [f"f{number}.py" in text for number in range(6)] == [False] * 4 + [True] * 2


def test_an_edit_that_deleted_more_than_there_is_room_for_is_not_undone():
    deleted = PastEdit("circle.py", 1, ("x = 1",) * 900, ("",), above=("import math",))
    for edits, before in (((RENAMED,), "self.r = r"), ((RENAMED, deleted), "self.radius = radius")):
        text = small_sweep_prompt(replace(document(CODE, 4, 28, *edits), room=3072)).text
        assert len(text) < 5000
        assert before in text.partition("<|file_sep|>original/")[2].partition("<|file_sep|>")[0]


def test_texts_of_other_files_stand_before_the_changes_and_the_best_one_last():
    asked = replace(
        document(CODE, 4, 28, RENAMED),
        snippets=(Snippet("best.py", "a = 1\n" * 40), Snippet("good.py", "b" * 900)),
        task=EditTask(history=(RENAMED,), diagnostics=(Diagnostic(7, "r is unknown"),)),
    )
    text = small_sweep_prompt(asked).text
    found = [text.index(one) for one in ("diagnostics\nr is", "good.py\nb", "best.py\na", "py:3:5")]
    assert found == sorted(found)
    assert text.count("a = 1\n") == 25
    assert "b" * 600 + "...\n" in text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", Refusal.EMPTY_BLOCK),
        ("\n\n", Refusal.EMPTY_BLOCK),
        ("x = 1\n" * 50_001, Refusal.LARGE_FILE),
        ("x" * 700 + "\n" * 9, Refusal.LONG_LINES),
        ('x = "<|file_sep|>"\n', Refusal.SPECIAL_TOKEN),
    ],
)
def test_nothing_is_asked_where_no_model_could_answer(code, reason):
    with pytest.raises(RefusedEditError) as refused:
        small_sweep_prompt(document(code, 0, 0))
    assert refused.value.code == reason
