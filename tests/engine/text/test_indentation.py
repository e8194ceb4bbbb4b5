"""Leaving the cursor's block."""

import pytest

from engine.text.indentation import IndentationRule
from engine.text.lines import Written, pieces


def kept(text: str, prefix: str, suffix: str) -> str | None:
    """The text before the line that leaves the block, judged as the text grows."""
    rule = IndentationRule.of(prefix, suffix)
    written = Written()
    for piece in pieces(text):
        for character in piece:
            written.push(character)
            cut = rule.cut(written)
            if cut is not None:
                return written.text[:cut]
    return None


F = "def f():\n    "
LOOP = "def f():\n    for x in y:\n        "
DEEP = "def f():\n    for x in y:\n        if x:\n            "
TABS = "void f() {\n\t"


@pytest.mark.parametrize(
    ("text", "prefix", "suffix", "left"),
    [
        ("x = 1\nprint(x)", F, "\n    return x\n", "x = 1\n"),
        # As far as it goes on behind the cursor, the block may be left.
        ("g(x)\n    h()\n", LOOP, "\n    return x\n", None),
        ("a()\n        b()\n    c()\n", DEEP, "\n            g(x)\n    return x\n", None),
        ("a()\nd()\n", DEEP, "\n            g(x)\n    return x\n", "a()\n"),
        # At the end of a file only the margin is outside.
        ("g(x)\n    return x\n", LOOP, "", None),
        ("g(x)\n    return x\nprint(f())\n", LOOP, "", "g(x)\n    return x\n"),
        # Something new behind a blank line leaves the block, a comment only there.
        ("x = 1\n\n\ndef h():\n", F, "\n\n\ndef g():\n    pass\n", "x = 1\n\n\n"),
        ("x = 1\n# why\n    y = 2\n", F, "\n    return x\n", None),
        ("x = 1\n\n# Check", F, "\n    return x\n", "x = 1\n\n"),
        # At the margin there is no block to leave.
        ("x = 1\n\ny = 2\n", "import a\n\n", "z = 3\n", None),
        # The first line is never outside.
        ("print(1)\n", "def f():\n", "    return 1\n", None),
        ("return 2\n    return 3\n", "def f():\n    if a:\n        ", "\n    b()\n", None),
        # An empty line takes its depth from the text.
        ("    b = 1\n    if b:\n", f"{F}if a:\n        return 1\n", "        return 2\n", None),
        ("x();\n}\n", TABS, "\n\ty();\n}\n", "x();\n"),
        # A line that a backslash joins to the one above is in the block of that.
        ("\n\tcc a.c\nall: a\n", "a: b \\\n        c", "\n\nclean:\n", None),
    ],
)
def test_the_text_ends_before_the_line_that_leaves_the_block(text, prefix, suffix, left):
    assert kept(text, prefix, suffix) == left
