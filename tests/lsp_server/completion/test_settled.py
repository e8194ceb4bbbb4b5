"""What can be shown of a text that is being written: the finished one begins with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.postprocess import process
from lsp_server.completion.settled import beginning, settled
from lsp_server.completion.syntax_judge import SyntaxJudge
from lsp_server.documents.document import Snapshot
from lsp_server.prompt.places import Places
from lsp_server.prompt.text_place import is_header


def around(document: str, language: str = "python") -> CursorContext:
    before, _, after = document.partition("|")
    position = Position(before.count("\n"), len(before.rpartition("\n")[2]))
    lines = (before + after).split("\n")
    return CursorContext.of(lines, position, language_id=language)


# Document, what was written by then, what of it is shown.
SETTLED = [
    ("def f():\n    |\n", "return total", "return total"),
    ("def f():\n    |\n", "a = 1\n    b = ", "a = 1"),  # a line that has not ended is not shown
    ("def f():\n    |\n", "\n    a = 1\n    b", "\n    a = 1"),
    ("x = f(|)", "a, b", ""),  # how much of the rest it replaces is not known
    ("def f():\n    |\n    return x\n", "return", ""),  # it may be the next line
    ("def f():\n    |\n    return x\n", "y = 2\n    return x\n    z", "y = 2"),
    ("def f():\n    |\n    return x\n", "y = 2\n    return x\n", "y = 2"),
    ("x = foo|", "x = f", ""),  # it may be the cursor's line again
    ("x = |", "a < b", "a < b"),
    ("|", "```py", ""),  # a fence
    ("f(\n    a,\n    |", "b,\n)\nc = 1\n", "b,"),  # the bracket may be one too many
    ("def f():\n    |\n", "x()\n    y()\n    y()\n", "x()\n    y()"),  # it may go in circles
]


@pytest.mark.parametrize(("document", "text", "expected"), SETTLED)
def test_what_may_still_be_taken_back_is_held(document, text, expected):
    assert settled(text, around(document), ends_word=True) == expected.rstrip()


def test_a_word_that_may_go_on_is_held():
    assert settled("return tot", around("def f():\n    |\n"), ends_word=False) == "return"


DOCUMENTS = [
    "def f(xs):\n    |\n\n\ndef g():\n    return 1\n",
    "def f(xs):\n    |\n    return total\n",
    "for x in xs:\n    total = |\n    use(x)\n",
    "x = f(a, |\n",
    "f(\n    a,\n    |\n)\n",
    "class A:\n    def f(self):\n        |\n\n    def g(self):\n        pass\n",
    "\tif x:\n\t\t|\n\ty = 1\n",
]
PIECES = [
    *("a", "total", " = ", "1", "(", ")", "[", "]", "{", "}", ":", ",", " ", "\n", "\n    "),
    *("\n        ", "\n  ", "\n\t", "return total", "use(x)", "if x:", "for x in xs:", "def g():"),
    *('"', "'", "#", "//", "<", "|>", "```", "x = f(", "\n)", "\n}", "else:", ";", ".", "pass"),
]


def judge_of(document: str) -> SyntaxJudge:
    """The parser's, which takes all the time that it needs."""
    context, lines = around(document), tuple(document.replace("|", "").split("\n"))
    utf16 = types.PositionEncodingKind.Utf16
    snapshot = Snapshot("file:///a.py", "python", 1, 1, lines, "\n", utf16)
    line = Places(lambda *_: None).parsed_line(snapshot, len(context.above))
    assert line is not None
    return SyntaxJudge(line, context, context.before, clock=lambda: 0.0)


@given(
    st.sampled_from(DOCUMENTS),
    st.lists(st.sampled_from(PIECES), max_size=16),
    st.lists(st.sampled_from(PIECES), max_size=16),
)
def test_what_is_shown_before_the_end_is_what_the_whole_begins_with(document, written, later):
    """But for the head of a block: if what follows in it is broken, it is left alone."""
    context = around(document)
    begun, whole = "".join(written).rstrip(), "".join((*written, *later))
    part = beginning(begun, context, judge_of(document), ends_word=False)
    if part.reason is None and not is_header(part.text.rpartition("\n")[2]):
        assert process(whole, context, judge_of(document)).text.startswith(part.text)


def test_the_head_of_a_block_is_shown_before_its_first_line():
    document, text = "def f(xs):\n    |\n", "for x in xs:\n        use"
    part = beginning(text, around(document), judge_of(document), ends_word=True)
    assert part.text == "for x in xs:"
