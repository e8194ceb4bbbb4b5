"""Edits that an instruction asks for: what the model reads, and what its answer changes."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.edits.asked import FIX, asked_prompt
from engine.edits.edit_prompt import EditedDocument, RefusedEditError
from engine.request import EditTask
from tests.support import edit_answers
from tests.support.edit_answers import refusal

METHOD = ("class Basket:", "    def total(self):", "        return 0", "", "basket = Basket()")


def rendered(messages, prefill):
    return "".join(f"{one.role}: {one.content}\n" for one in messages) + prefill


def asked(lines=METHOD, first=1, end=3, instruction="Add a docstring.", path="shop.py"):
    task = EditTask(instruction, first, end)
    return asked_prompt(EditedDocument(path, lines, first, 0, task), rendered)


def read(prompt, code):
    """Read an answer that ends with its fence."""
    return edit_answers.read(prompt, f"{code}\n{prompt.block.rpartition(chr(10))[2]}")


def test_the_model_reads_the_lines_and_the_instruction_and_has_begun_its_answer():
    prompt = asked()
    shown = "```py\ndef total(self):\n    return 0\n```"
    assert f"{shown}\n\nAdd a docstring." in prompt.text
    assert prompt.text.endswith(prompt.prefill)
    assert prompt.block == shown
    assert prompt.stops == ()


def test_the_new_lines_are_indented_as_the_old_ones():
    edit = read(asked(), 'def total(self):\n    """Sum up."""\n\n    return 0')
    assert (edit.first, edit.end) == (1, 3)
    assert edit.lines == (
        "    def total(self):",
        '        """Sum up."""',
        "",
        "        return 0",
    )


def test_line_ends_of_another_system_are_none_of_the_text():
    assert read(asked(), "def total():\r\n    return 1\r\n").lines == (
        "    def total():",
        "        return 1",
    )


def test_an_answer_in_the_files_own_indentation_is_not_indented_twice():
    edit = read(asked(), "    def total(self):\n        return 1")
    assert edit.lines == ("    def total(self):", "        return 1")


def test_blank_lines_around_the_selected_code_stay():
    edit = read(asked(first=2, end=4), "\nreturn 1\n")
    assert edit.lines == ("        return 1", "")


def test_blank_lines_become_what_is_written_there():
    edit = read(asked(("import os", "", "", "x = 1"), 1, 3), "import sys")
    assert edit.lines == ("import sys",)


def test_text_behind_the_closing_fence_changes_nothing():
    """Nobody can tell whether the fence is one within the code, and what follows the rest of it."""
    said = "def total(self):\n    return 1\n```\nThis returns 1."
    assert refusal(asked(), said) == "malformed"


def test_a_fence_within_the_code_deletes_nothing_behind_it():
    said = 'def total(self):\n"""Sum up.\n\n```\ntotal()\n```\n"""\n    return 1\n```'
    assert refusal(asked(), said) == "malformed"


def test_an_instruction_with_fences_gets_a_longer_one():
    prompt = asked(instruction="Take this docstring:\n\n```\ntotal()\n```")
    assert prompt.prefill == "````py\n"
    edit = read(prompt, "def total(self):\n```\ntotal()\n```")
    assert edit.lines == ("    def total(self):", "    ```", "    total()", "    ```")


@pytest.mark.parametrize("spaces", ["\n\n", "\r\n \n"])
def test_white_space_behind_the_closing_fence_is_left_out(spaces):
    edit = edit_answers.read(asked(), f"def total(self):\n    return 1\n```{spaces}")
    assert edit.lines == ("    def total(self):", "        return 1")


def test_a_block_with_fences_of_its_own_has_a_longer_one():
    lines = ("Usage:", "```sh", "run", "```")
    prompt = asked(lines, 0, 4, path="README.md")
    assert prompt.prefill == "````md\n"
    edit = read(prompt, "Use:\n```sh\nrun\n```")
    assert edit.lines == ("Use:", "```sh", "run", "```")


def test_markdown_may_get_a_block_of_code():
    prompt = asked(("# Tool", "Runs things."), 0, 2, path="README.md")
    assert prompt.prefill == "````md\n"
    edit = read(prompt, "# Tool\n\n```sh\nrun\n```\nRuns things.")
    assert edit.lines == ("# Tool", "", "```sh", "run", "```", "Runs things.")


def test_an_answer_that_opens_a_block_in_its_block_changes_nothing():
    """It may stop at the inner end, and what comes behind would be deleted."""
    assert refusal(asked(), 'def total(self):\n"""Sum up.\n```py\ntotal()') == "malformed"


def test_an_answer_without_its_end_changes_nothing():
    for text in ("def total(self):", "def total(self):\n```"):
        assert refusal(asked(), text, is_cut=True) == "token_limit"
    assert refusal(asked(), "def total(self):") == "malformed"


def test_blanks_at_the_end_of_a_line_can_be_removed():
    edit = read(asked(("x = 1  ", "y = 2"), 0, 2), "x = 1\ny = 2")
    assert edit.lines == ("x = 1", "y = 2")


def test_lines_of_white_space_stay_where_the_answer_keeps_them():
    lines = ("    x = 1", "    ", "    y = 2", "\t", "    z = 3")
    edit = read(asked(lines, 0, 5), "x = 4\n\ny = 5\n\nz = 6")
    assert edit.lines == ("    x = 4", "    ", "    y = 5", "\t", "    z = 6")


def test_blank_lines_around_the_code_keep_their_white_space():
    assert read(asked(("  ", "x", "", "y", "\t"), 0, 5), "y").lines == ("  ", "y", "\t")


def test_lines_of_white_space_stay_in_a_long_answer():
    """Next to equal lines, and between changed ones if few are changed."""
    lines = [text for number in range(200) for text in (f"x{number} = 1", "  ")]
    few = [*lines[:200], "y = 2", "  ", "z = 3", *lines[203:]]
    more = ["import os", *lines[:-1], "y = 2", "  "]
    for answer in (few, more):
        edit = read(asked(lines, 0, 400), "\n".join(answer).replace("  ", ""))
        assert edit.lines == tuple(answer)


def test_a_long_answer_to_double_spaced_text_is_read_at_once():
    lines = [text for number in range(200) for text in (f"old {number}", " ")]
    answer = [text for number in range(1_000) for text in (f"new {number}", "")]
    prompt = asked(lines, 0, 400, path="README.md")
    begun = process_time()
    assert read(prompt, "\n".join(answer)).lines == (*answer[:-1], " ")
    assert process_time() - begun < 0.5  # seconds; 0.01 is usual, and all pairs would take 3


def test_the_same_text_is_no_change():
    assert refusal(asked(), "def total(self):\n    return 0  \n```") == "no_change"


@pytest.mark.parametrize("answer", ["```", "\n```\n"])
def test_an_answer_that_is_only_its_end_deletes_the_lines(answer):
    edit = edit_answers.read(asked(first=2), answer)
    assert (edit.first, edit.end, edit.lines) == (2, 3, ())
    assert edit_answers.read(asked(first=2, end=4), answer).lines == ("",)  # none of the blank ones


def test_the_fix_of_a_problem_deletes_not_all_lines_around_it():
    fix = asked(instruction=f"{FIX} in the line `return 0`: `return` needs a docstring")
    assert refusal(fix, "```") == "empty_answer"


@pytest.mark.parametrize("answer", ["", "\n", "```\nI cannot do this."])
def test_an_answer_without_code_changes_nothing(answer):
    assert refusal(asked(), answer) == "empty_answer"


LINES = st.lists(st.sampled_from(["", "  ", "a", "    b", "\tc", "```", "    # x"]), max_size=9)


@given(LINES.filter(bool), st.data())
def test_only_the_lines_that_were_named_can_change(lines, data):
    first = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(first + 1, len(lines)))
    prompt = asked(lines, first, end)
    answer = "\n".join((*data.draw(LINES), prompt.block.rpartition("\n")[2]))
    try:
        edit = prompt.read(answer, data.draw(st.booleans()))
    except RefusedEditError:
        return
    assert (edit.first, edit.end) == (first, end)
    assert not any("\n" in line for line in edit.lines)
