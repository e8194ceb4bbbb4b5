"""A change of whole lines, in the client's units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from engine.request import EditOutcome, EditTask
from lsp_server.documents.document import Document
from lsp_server.documents.line_buffer import LineBuffer
from lsp_server.edits.refusals import EditRefusedError
from lsp_server.edits.text_edit import change_of, text_edit

LINES = st.lists(st.text("ab🙂é", max_size=3), max_size=6).map(tuple)


def document_of(text):
    return Document(types.TextDocumentItem("file:///a.py", "python", 1, text), 1).snapshot


def edited(outcome, document, line_end):
    return text_edit(change_of(outcome, EditTask(), document.lines), document, line_end)


def span(start_line, start, end_line, end):
    return types.Range(types.Position(start_line, start), types.Position(end_line, end))


@pytest.mark.parametrize(
    ("first", "end", "lines", "where", "text"),
    [
        pytest.param(0, 3, ("a", "X", "c"), span(1, 0, 1, 3), "X", id="common lines are left out"),
        pytest.param(1, 1, ("X", "Y"), span(1, 0, 1, 0), "X\r\nY\r\n", id="added lines"),
        pytest.param(1, 2, (), span(1, 0, 2, 0), "", id="a deleted line"),
        pytest.param(2, 3, ("c", "d"), span(2, 1, 2, 1), "\r\nd", id="a line after the last"),
        pytest.param(1, 3, (), span(0, 1, 2, 1), "", id="the last lines are deleted"),
        pytest.param(0, 3, (), span(0, 0, 2, 1), "", id="all lines are deleted"),
        pytest.param(1, 2, ("b🙂!",), span(1, 0, 1, 3), "b🙂!", id="an emoji is two units"),
        pytest.param(1, 2, ("X\rY",), span(1, 0, 1, 3), "X\r\nY", id="a stray carriage return"),
    ],
)
def test_a_change_is_the_smallest_one_in_the_clients_units(first, end, lines, where, text):
    document = document_of("a\r\nb🙂\r\nc")
    assert edited(EditOutcome(first, end, lines), document, "\r\n") == types.TextEdit(where, text)


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(EditOutcome(0, 1, ("a",)), id="nothing changes"),
        pytest.param(EditOutcome(1, 4, ("X",)), id="beyond the text"),
        pytest.param(EditOutcome(2, 1, ("X",)), id="the end is before the first line"),
        pytest.param(EditOutcome(0, 1, ("X",), refusal="empty"), id="refused"),
        pytest.param(EditOutcome(1, 2, ("b?",)), id="half a character, which the host lacks"),
    ],
)
def test_what_changes_nothing_or_does_not_fit_is_no_change(outcome):
    with pytest.raises(EditRefusedError):
        change_of(outcome, EditTask(), document_of("a\nb\ud83d\nc").lines)


def test_a_change_of_other_lines_than_was_asked_for_is_refused():
    for first, end in ((0, 2), (1, 3), (3, 3)):
        with pytest.raises(EditRefusedError, match="other lines"):
            change_of(EditOutcome(first, end, ("x",)), EditTask("Sort.", 1, 2), ("a", "b", "c"))


@given(old=LINES, new=LINES, above=LINES, below=LINES, end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_client_gets_the_very_lines(old, new, above, below, end):
    before = (*above, *old, *below) or ("",)
    first, last = len(above), len(above) + len(old)
    after = (*before[:first], *new, *before[last:]) or ("",)
    outcome = EditOutcome(first, last, new)
    document = document_of(end.join(before))
    if before == after:
        with pytest.raises(EditRefusedError, match="change nothing"):
            change_of(outcome, EditTask(), before)
        return
    edit = edited(outcome, document, end)
    buffer = LineBuffer(end.join(before))
    buffer.apply(edit.range, edit.new_text)
    assert buffer.lines == after
    assert buffer.line_end == end or len(buffer.lines) == 1
    change = change_of(outcome, EditTask(), before)
    assert change.end - change.first <= len(old)
