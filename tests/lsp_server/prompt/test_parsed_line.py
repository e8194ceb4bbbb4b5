"""A line in a parsed text: what is wrong with other text in its place, and where."""

import pytest

from lsp_server.prompt import parsed_line
from lsp_server.prompt.parsed_line import ParsedLine
from lsp_server.prompt.syntax import DocumentSyntax

SOURCE = "import os\n\n\ndef area(width):\n    return width\n\n\nx = 1\n"


def line_of(text: str, row: int, language_id: str = "python") -> ParsedLine:
    line = DocumentSyntax(language_id).parsed_line(text.split("\n"), row)
    assert line is not None
    return line


def test_faults_are_told_by_where_they_stand():
    edited = line_of(SOURCE + "y = )\n", 4).with_text("    a = 1\n    return (")
    assert edited.num_here > 0
    assert {fault.row for fault in edited.faults_around} <= {8}, "at the row before the edit"


def test_the_text_without_the_lines_block_is_that_of_the_others():
    without = line_of(SOURCE, 4).without_block()
    assert b"".join(without.rows).decode() == "import os\n\n\nx = 1\n\n"
    assert without.faults == ()


def test_a_closing_line_belongs_to_the_block():
    text = "int a(void) {\n  return 1;\n}\nint b;\n"
    assert b"".join(line_of(text, 1, "c").without_block().rows).decode() == "int b;\n\n"


@pytest.mark.parametrize(
    ("new", "is_python"),
    [
        ("    return 1", True),
        ("    if width:", False),
        ("    if width:\n        pass", True),
        ("    call(a=1, 2)", False),
        ("  return 1", True),
        ("    if width:\n        # to come", False),
        ('    return "\\d"', True),
    ],
)
def test_python_itself_reads_what_the_grammar_takes_for_granted(new, is_python):
    assert line_of(SOURCE, 4).with_text(new).is_python is is_python


def test_where_there_is_no_grammar_there_is_no_line():
    assert DocumentSyntax("ruby").parsed_line(["puts"], 0) is None


@pytest.mark.parametrize("new", ["    return width * 2", "    return '\ud800'"])
def test_a_text_that_is_whole_has_no_faults(new):
    edited = line_of(SOURCE, 4).with_text(new)
    assert edited.faults == ()
    assert edited.rows[3:6] == (
        b"def area(width):\n",
        new.encode("utf-8", "replace") + b"\n",
        b"\n",
    )


def test_a_text_that_takes_too_long_is_faulty(monkeypatch):
    monkeypatch.setattr(parsed_line, "_PATIENCE_S", -1.0)
    edited = line_of(SOURCE, 4).with_text("    return 1")
    assert edited.num_here == 1
