"""Leaving the cursor's block."""

from engine.text.indentation import IndentationRule
from engine.text.lines import Written, pieces


def kept(text: str, prefix: str, suffix: str = "") -> str | None:
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


def test_a_line_at_the_margin_leaves_a_function_that_goes_on():
    assert kept("x = 1\nprint(x)", "def f():\n    ", "\n    return x\n") == "x = 1\n"


def test_a_line_as_deep_as_what_follows_stays():
    prefix = "def f():\n    for x in y:\n        "
    assert kept("g(x)\n    h()\n", prefix, "\n    return x\n") is None


def test_the_block_may_be_left_as_far_as_it_goes_on_behind_the_cursor():
    prefix = "def f():\n    for x in y:\n        if x:\n            "
    suffix = "\n            g(x)\n    return x\n"
    assert kept("a()\n        b()\n    c()\n", prefix, suffix) is None
    assert kept("a()\nd()\n", prefix, suffix) == "a()\n"


def test_at_the_end_of_a_file_only_the_margin_is_outside():
    prefix = "def f():\n    for x in y:\n        "
    assert kept("g(x)\n    return x\n", prefix) is None
    assert kept("g(x)\n    return x\nprint(f())\n", prefix) == "g(x)\n    return x\n"


def test_something_new_behind_a_blank_line_leaves_the_block():
    prefix, suffix = "def f():\n    ", "\n\n\ndef g():\n    pass\n"
    assert kept("x = 1\n\n\ndef h():\n", prefix, suffix) == "x = 1\n\n\n"


def test_a_comment_at_the_margin_is_something_new_only_behind_a_blank_line():
    prefix, suffix = "def f():\n    ", "\n    return x\n"
    assert kept("x = 1\n# why\n    y = 2\n", prefix, suffix) is None
    assert kept("x = 1\n\n# Check", prefix, suffix) == "x = 1\n\n"


def test_at_the_margin_there_is_no_block_to_leave():
    assert kept("x = 1\n\ny = 2\n", "import a\n\n", "z = 3\n") is None


def test_the_first_line_is_never_outside():
    assert kept("print(1)\n", "def f():\n", "    return 1\n") is None
    assert kept("return 2\n    return 3\n", "def f():\n    if a:\n        ", "\n    b()\n") is None


def test_an_empty_line_takes_its_depth_from_the_text():
    """The line before it stands deeper, but tells nothing of where the text goes on."""
    prefix, suffix = "def f():\n    if a:\n        return 1\n", "        return 2\n"
    assert kept("    b = 1\n    if b:\n", prefix, suffix) is None


def test_tabs_count_as_indentation():
    assert kept("x();\n}\n", "void f() {\n\t", "\n\ty();\n}\n") == "x();\n"


def test_a_line_that_a_backslash_joins_to_the_one_above_is_in_the_block_of_that():
    assert kept("\n\tcc a.c\nall: a\n", "a: b \\\n        c", "\n\nclean:\n") is None
