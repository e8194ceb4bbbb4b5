"""The form of next edits that a model knows, and what holds for each form."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.edits.edit_prompt import EditedDocument, RefusedEditError
from engine.edits.formats import format_for
from engine.edits.instinct import instinct_prompt
from engine.edits.instruct import instruct_prompt
from engine.edits.sweep import small_sweep_prompt, sweep_prompt
from engine.edits.zeta import zeta_1_prompt, zeta_2_prompt, zeta_21_prompt
from engine.request import EditTask, PastEdit, Snippet
from tests.support.edit_answers import read

QWEN = ("<|fim_prefix|>", "<|im_start|>")
MODELS = ("sweep-0.5b", "sweep-7b", "zeta", "zeta-2", "zeta-2.1", "instinct", "offline")
WORDS = (
    "a",
    "b ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\x0c",
    "\u2028",
    "\U0001f600",
    "é",
    "<|cursor|>",
)
MARKS = (
    "<|marker_1|>",
    "<|marker_2|>",
    "<|marker_9|>",
    "<|editable_region_start|>\n",
    "\n<|editable_region_end|>",
    ">>>>>>> UPDATED\n",
    "NO_EDITS",
    "<|file_sep|>",
    " No newline at end of file",
)
CODE = st.lists(st.sampled_from(WORDS), max_size=40).map("".join)
LINES = CODE.map(lambda text: tuple(text.replace("\r", "").split("\n")))
ANSWERS = st.lists(st.sampled_from(WORDS + MARKS), max_size=12).map("".join)
EDITS = st.builds(
    PastEdit, st.sampled_from(["a.py", "b.py"]), st.integers(0, 9), LINES, LINES, LINES, LINES
)


def prompt_for(name, asked):
    """Return the prompt of a model, or nothing where the document allows none."""
    form = format_for(name, QWEN)
    assert form is not None
    try:
        return form(asked)
    except RefusedEditError:
        return None


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("sweepai/sweep-next-edit-0.5B", small_sweep_prompt),
        ("/models/sweep-next-edit-0.5b.q8_0.gguf", small_sweep_prompt),
        ("sweepai/sweep-next-edit-1.5B", sweep_prompt),
        ("/models/sweep-next-edit-1.5b.q8_0.v2.gguf", sweep_prompt),
        ("owner/sweep-next-edit-v2-7B-GGUF:Q4_K_M", sweep_prompt),
        ("zed-industries/zeta-2", zeta_2_prompt),
        ("/models/zeta2-q4_k_m.gguf", zeta_2_prompt),
        ("/models/zed-industries_zeta-2-Q4_K_M.gguf", zeta_2_prompt),
        ("owner/zeta-2.1-Q4_K_M-GGUF", zeta_21_prompt),
        ("sweep-0.5b", small_sweep_prompt),
        ("sweep-1.5b", sweep_prompt),
        ("sweep-7b", sweep_prompt),
        ("zeta-2", zeta_2_prompt),
        ("zed-industries/zeta", zeta_1_prompt),
        ("/models/zed-industries_zeta_q4.gguf", zeta_1_prompt),
        ("continuedev/instinct", instinct_prompt),
        ("offline", instruct_prompt),
        ("Qwen2.5-Coder-1.5B-Instruct", instruct_prompt),
        ("1.5b", None),
        ("7b", None),
        ("owner/sweeping-changes-7b", None),
        ("owner/thezetatron", None),
    ],
)
def test_a_model_is_known_by_its_name(name, form):
    assert format_for(name, QWEN) == form


def test_an_instruct_model_with_another_form_of_chats_proposes_nothing():
    assert format_for("owner/Llama-3-Instruct", ("<|begin_of_text|>",)) is None


@pytest.mark.parametrize("name", MODELS)
def test_names_of_special_tokens_in_a_document_stay_text(name):
    line = 'end = "<|endoftext|>"'
    edit = PastEdit(f"{line}.py", 3, (line,), (f"{line} + x",), (line,), (line,))
    snippets = (Snippet(f"{line}.py", line),)
    near = [f"x_{number:03} = {number:04}" for number in range(55)]  # more than any block has
    lines = [line, *near, *near, line]
    asked = EditedDocument(f"{line}.py", lines, 55, 2, EditTask(history=(edit,)), snippets)
    asked = replace(asked, marked=lambda text: text.replace("<|endoftext|>", "<|end-of-text|>"))
    form = format_for(name, QWEN)
    assert form is not None
    prompt = form(asked)
    assert "<|end-of-text|>" in prompt.text
    assert "<|endoftext|>" not in prompt.text
    with pytest.raises(RefusedEditError, match="special_token"):  # its name would end the answer
        form(replace(asked, row=0))


@given(
    st.sampled_from(MODELS),
    LINES,
    st.integers(0, 9),
    st.integers(0, 9),
    st.lists(EDITS, max_size=3),
)
def test_a_prompt_shows_its_document_and_begins_the_answer(name, lines, row, column, history):
    row = min(row, len(lines) - 1)
    task = EditTask(history=tuple(history))
    asked = EditedDocument("a.py", lines, row, column, task, (Snippet("c.py", "x = 1\n"),))
    if (prompt := prompt_for(name, asked)) is None:
        return
    assert prompt.block.startswith(prompt.prefill)
    assert prompt.text.endswith(prompt.prefill)
    assert lines[row][:column] in prompt.text
    assert "c.py" in prompt.text or name in ("zeta", "offline")


@given(st.sampled_from(MODELS), LINES, st.integers(0, 9), st.data())
def test_any_answer_changes_lines_of_its_block_or_is_refused(name, lines, row, data):
    row = min(row, len(lines) - 1)
    lines = tuple(f"{line}{number}" if line.strip() else line for number, line in enumerate(lines))
    asked = EditedDocument("a.py", lines, row, len(lines[row]), EditTask())
    if (prompt := prompt_for(name, asked)) is None:
        return
    kept = prompt.block.removeprefix(prompt.prefill)
    parts = [st.sampled_from([kept, kept[:9], ""]), ANSWERS, st.sampled_from([kept, kept[9:], ""])]
    answer = "".join(map(data.draw, parts))
    try:
        edit = prompt.read(answer, data.draw(st.booleans()))
    except RefusedEditError:
        return
    assert 0 <= edit.first <= edit.end <= len(lines)
    assert edit.lines != lines[edit.first : edit.end]
    assert not any(set(line) & set("\r\n") for line in edit.lines)
    old = lines[edit.first : edit.end]
    assert all(line in prompt.block for line in old)


@given(st.sampled_from(("zeta-2", "instinct", "offline")), LINES, st.integers(0, 9), st.data())
def test_a_line_that_the_answer_changes_is_all_that_changes(name, lines, row, data):
    asked = EditedDocument("a.py", lines, min(row, len(lines) - 1), 0, EditTask())
    if (prompt := prompt_for(name, asked)) is None:
        return
    block = prompt.block.split("\n")
    filled = [number for number, line in enumerate(block) if line.strip()]
    block[data.draw(st.sampled_from(filled))] = "changed 😀"
    edit = read(prompt, "\n".join(block))
    assert (edit.end - edit.first, edit.lines) == (1, ("changed 😀",))
    assert lines[edit.first].strip()
