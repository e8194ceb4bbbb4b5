"""What can be shown of a text that is being written: the finished one begins with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.protocol import Position
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.postprocess import process
from lsp_server.completion.settled import settled


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
    ("x = |", "a <|fim", "a"),  # a control token begins
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
    "if (a) {\n  |\n}\n",
    "\tif x:\n\t\t|\n\ty = 1\n",
]
PIECES = [
    *("a", "total", " = ", "1", "(", ")", "[", "]", "{", "}", ":", ",", " ", "\n", "\n    "),
    *("\n        ", "\n  ", "\n\t", "return total", "use(x)", "if x:", "for x in xs:", "def g():"),
    *('"', "'", "#", "//", "<", "|>", "```", "x = f(", "\n)", "\n}", "else:", ";", ".", "pass"),
]


@given(
    st.sampled_from(DOCUMENTS),
    st.sampled_from(["python", "javascript", "go"]),
    st.lists(st.sampled_from(PIECES), max_size=16),
    st.lists(st.sampled_from(PIECES), max_size=16),
)
def test_what_is_shown_before_the_end_is_what_the_whole_begins_with(
    document, language, written, later
):
    context = around(document, language)
    begun, whole = "".join(written).rstrip(), "".join((*written, *later))
    part = process(settled(begun, context, ends_word=False), context, goes_on=True)
    made = process(whole, context)
    if part.reason is None and made.reason is None:
        assert made.text.startswith(part.text) or part.text.startswith(made.text)
