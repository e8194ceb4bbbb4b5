"""Requests for edits become prompts, and their answers outcomes."""

import math

import pytest

from engine.config import StopRules
from engine.edits.asked import MOST_ASKED_LINES
from engine.edits.edit_prompt import EditedDocument, EditPrompt, RefusedEditError
from engine.edits.laid_out import EditLayout, LaidOutEdit
from engine.errors import InputError, NoChatTemplateError, NoEditModelError
from engine.growing_text import GrowingText
from engine.request import (
    CompletionRequest,
    EditOutcome,
    EditTask,
    FinishReason,
    PastEdit,
    Snippet,
)
from tests.engine.model.test_chat_template import CHATML, tokenizer_with
from tests.support.byte_tokenizer import CONTROL_TOKENS

BLOCK = "a = 1\nb = 2\nc = 3\nd = 4"
HALF, CERTAIN = math.log(0.5), 0.0


def read(answer, is_cut):
    if is_cut:
        raise RefusedEditError("token_limit")
    return EditOutcome(0, 4, tuple(answer.split("\n")))


def edit_of(prefill="", task=None):
    document = EditedDocument("shop.py", BLOCK.split("\n"), 0, 0, task or EditTask())
    return LaidOutEdit(EditPrompt("prompt", BLOCK, prefill, ("<stop>",), read), document)


def written(*tokens, reason=FinishReason.END_TOKEN):
    """Write an answer by tokens, those with a star half as probable as the others."""
    text = GrowingText(CompletionRequest("", "", stop=StopRules.verbatim(99)), lambda _: None)
    for token in tokens:
        text.grow(token.removeprefix("*"), HALF if token.startswith("*") else CERTAIN)
    if reason:
        text.finish(reason)
    return text


@pytest.mark.parametrize(
    ("tokens", "probability"),
    [
        pytest.param(("*a = ", "1\n", "*b = 2\n", "*c = 3\nd = 4"), 1.0, id="nothing changes"),
        pytest.param(("*a = 1\n", "b", "* =", "* 7", "\nc = 3\n", "*d = 4"), 0.25, id="a line"),
        pytest.param(("*a = 1\n", "*new\n", "*b = 2\nc = 3\nd = 4"), 0.5, id="one more line"),
        pytest.param(("*a = 1\n", "*c = 3\n", "*d = 4"), 0.5, id="one line less"),
        pytest.param(("*a = 1\n", "*x", "* = 1\nb = 2\nc = 3\n", "*d = 4"), 0.25, id="over a line"),
        pytest.param(("x = 1\n", "*b = 2\n", "*c = 3\n", "*y"), 0.5, id="two places"),
    ],
)
def test_the_probability_is_that_of_the_tokens_in_changed_lines(tokens, probability):
    outcome = edit_of().outcome(written(*tokens))
    assert outcome is not None
    assert outcome.probability == pytest.approx(probability)


def test_lines_that_the_prompt_begins_the_answer_with_are_compared_too():
    outcome = edit_of("a = 1\n").outcome(written("*b = 2\n", "*c = 9\n", "*d = 4"))
    assert outcome is not None
    assert outcome.probability == pytest.approx(0.5)


def test_half_a_character_at_the_end_of_a_changed_line_counts():
    text = GrowingText(CompletionRequest("", "", stop=StopRules.verbatim(99)), lambda _: None)
    for piece, log_prob in (("a = 1\nb = ", 0.0), ("", HALF), ("é", HALF), ("\nc = 3\nd = 4", 0.0)):
        text.grow(piece, log_prob)
    text.finish(FinishReason.END_TOKEN)
    outcome = edit_of().outcome(text)
    assert outcome is not None
    assert outcome.probability == pytest.approx(0.25)


def test_the_end_of_an_answer_decides_on_the_lines_that_it_leaves_out():
    for tokens, probability in ((("a = 1\n", "*b = 2"), 0.5), (("*a = 1\n", BLOCK[6:]), 1.0)):
        text = written(*tokens, reason=None)
        text.finish(FinishReason.END_TOKEN, HALF)
        outcome = edit_of().outcome(text)
        assert outcome is not None
        assert outcome.probability == pytest.approx(probability)


@pytest.mark.parametrize(
    ("reason", "instruction", "refusal"),
    [
        (FinishReason.MAX_TOKENS, "", "token_limit"),
        (FinishReason.CANCELLED, "", "token_limit"),
        (FinishReason.END_TOKEN, "", ""),
        (FinishReason.MAX_TOKENS, "Sort.", "token_limit"),
        (FinishReason.CONTEXT_FULL, "Sort.", "token_limit"),
        (FinishReason.END_TOKEN, "Sort.", ""),
        (FinishReason.FIM_TOKEN, "Sort.", ""),
    ],
)
def test_only_an_answer_with_its_end_changes_anything(reason, instruction, refusal):
    edit = edit_of(task=EditTask(instruction, 0, 4))
    outcome = edit.outcome(written("x", reason=reason))
    assert outcome == (EditOutcome(refusal=refusal) if refusal else EditOutcome(0, 4, ("x",)))


def test_a_prompt_that_was_only_read_has_no_outcome():
    assert edit_of().outcome(written(reason=FinishReason.PREFILLED)) is None


def test_the_answer_may_be_a_little_longer_than_its_lines():
    request = CompletionRequest("", "", stop=StopRules(max_tokens=4096))
    raw = edit_of("a = 1\n", EditTask("Sort.", 0, 4)).as_raw(request)
    assert (raw.prefix, raw.copied) == ("prompt", "b = 2\nc = 3\nd = 4")
    assert len(BLOCK) < raw.stop.max_tokens < 1000
    assert raw.stop.strings == ("<stop>",)
    assert edit_of().as_raw(request).stop.max_tokens == 1024  # of a next edit, as Sweep's server
    read_only = edit_of().as_raw(CompletionRequest("", "", stop=StopRules(max_tokens=0)))
    assert read_only.stop.max_tokens == 0


def layout(template=CHATML, name="a model", names=CONTROL_TOKENS):
    return EditLayout(name, tokenizer_with(template, names), lambda _, prefill: prefill, 9000)


def asked(first, end, num_lines=9):
    return CompletionRequest("\n" * (num_lines - 1), "", path="a.py"), EditTask("Sort.", first, end)


@pytest.mark.parametrize(("first", "end"), [(3, 3), (4, 3), (8, 10), (10, 11)])
def test_lines_that_are_not_there_are_refused(first, end):
    with pytest.raises(InputError, match=f"lines {first} to {end} are no range of 9 lines"):
        layout().laid_out(*asked(first, end))


def test_more_lines_than_anybody_waits_for_are_refused():
    many = MOST_ASKED_LINES + 1
    with pytest.raises(InputError, match="too many to change at once"):
        layout().laid_out(*asked(0, many, many))


def test_a_model_without_a_form_for_it_makes_no_edit():
    with pytest.raises(NoChatTemplateError, match="Instruct"):
        layout(template="").check(EditTask("Sort.", 0, 1))
    with pytest.raises(NoEditModelError, match=r"sweep-1\.5b"):
        layout().check(EditTask())


def test_an_instruct_model_is_asked_for_next_edits_only_if_somebody_wants_that():
    plain = layout(name="Qwen2.5-Coder-0.5B-Instruct", names=(*CONTROL_TOKENS, "<|im_start|>"))
    with pytest.raises(NoEditModelError, match="`edit_model` may name it"):
        plain.check(EditTask())
    plain.check(EditTask("Sort.", 0, 1))
    assert plain.laid_out(CompletionRequest("x = 1", "", path="a.py"), EditTask())


def test_an_edit_model_is_asked_for_the_next_edit_around_the_cursor():
    request = CompletionRequest("x = 1\ny = ", "2\nz = 3", path="a.py")
    edit = layout(name="sweep-next-edit-0.5b").laid_out(request, EditTask())
    assert (edit.document.row, edit.document.column) == (1, 4)
    assert "y = <|cursor|>2" in edit.prompt.text


def test_a_prompt_names_the_other_files_that_it_shows():
    request = CompletionRequest("x", "", path="a.py", repository=(Snippet("b.py", "b"),))
    task = EditTask(history=(PastEdit("a.py", 0), PastEdit("c.py", 3), PastEdit("b.py", 1)))
    edit = layout(name="sweep-next-edit-0.5b").laid_out(request, task)
    assert edit.shown_paths == ("b.py", "c.py")
