"""Reaching the suffix: what counts as evidence, and where the text is cut."""

import pytest

from engine.text.lines import Written
from engine.text.suffix import SuffixRule, repeats

PREFIX = "def area(shape):\n    width = shape.width\n"
SHORT = "    else:\n        width = 2\n"
SHIFTED = "\n    total = 0\n    return total + width\n"


def cut(text: str, suffix: str, prefix: str = PREFIX) -> str | None:
    """The text before the suffix, judged at each of its line ends."""
    rule = SuffixRule.of(prefix, suffix)
    for end, character in enumerate(text, 1):
        if character == "\n":
            place = rule.cut(Written.of(text[:end]))
            if place is not None:
                return text[:place]
    return None


@pytest.mark.parametrize(
    ("middle", "suffix"),
    [
        ("    height = shape.height\n", "    return width * height\n"),
        ("    height = shape.height", "\n    return width * height\n"),
        ("    height = shape.height\n", "\n\n    return width * height\n"),
        ("    height = sha", "pe.height\n    return width * height\n"),
        ("    height = shape", ".height  # in metres\n"),
        ("    height = max(1, shape.height", ")\n    return width * height\n"),
        ("", "    return width * height\n"),
        ("    if not width:\n        ", "return 0\n    return width * shape.height\n"),
        ("    height = shape.height\r\n", "    return width * height\r\n"),
    ],
)
def test_a_model_that_writes_on_is_cut_exactly_where_the_hole_ends(middle, suffix):
    assert cut(middle + suffix + "\n\ndef other():\n    pass\n", suffix) == middle


@pytest.mark.parametrize(
    ("text", "suffix", "kept"),
    [
        # One line that says something is evidence; white space inside it does not matter.
        (
            "    height = 2\n    return width * height\n",
            "    return width*height\n    # never\n",
            "    height = 2\n",
        ),
        # Nor do blank lines between the lines.
        ("    a = 2\n    x = 1\n    y = shape\n", "    x = 1\n\n    y = shape\n", "    a = 2\n"),
        # A short line is evidence only together with the next.
        ("    if a:\n        b()\n    else:\n        c()\n", SHORT, None),
        (
            "    if a:\n        b()\n    else:\n        width = 2\n",
            SHORT,
            "    if a:\n        b()\n",
        ),
        # Shifted lines need one line more, and leave no indentation behind.
        ("    if a:\n        total = 0\n        total += 1\n", SHIFTED, None),
        ("    if a:\n        total = 0\n        return total + width\n", SHIFTED, "    if a:"),
        (
            "    a = 1\n        total = 0\n        return total + width\n",
            SHIFTED[1:],
            "    a = 1\n",
        ),
        # The cursor stood inside the indentation of the line behind it: that belongs to the hole.
        (
            "    if a:\n        return width\n\n    return height\n",
            "   return width\n\n    return height\n",
            "    if a:\n     ",
        ),
    ],
)
def test_how_many_lines_have_to_agree_depends_on_what_they_say(text, suffix, kept):
    assert cut(text, suffix) == kept


@pytest.mark.parametrize("suffix", ["}\n", "    )\n  ]\n", "\n", "", "    x\n"])
def test_closing_brackets_and_blank_lines_are_no_evidence(suffix):
    assert cut("    a = 2\n" + suffix + suffix, suffix) is None


def test_a_line_that_the_file_repeats_needs_the_next_one_too():
    prefix = "if a:\n    return False\nif b:\n    return False\n"
    suffix = "    return False\nreturn True\n"
    assert cut("if c:\n    return False\nif d:\n", suffix, prefix) is None
    assert cut("if c:\n    return False\nreturn True\n", suffix, prefix) == "if c:\n"


@pytest.mark.parametrize(
    ("text", "suffix", "kept"),
    [
        ("    go();\n}\n", "}\n\nint other() {\n", "    go();\n"),
        ("    go(x)\n", ")\n", "    go(x)\n"),
        ("    go(x))\n", ")\n", "    go(x)"),
        ("return va\n", "a\n", "return v"),  # a repeat of all that follows
        ("return va\n", "a\nb\nc\nd\ne\nf\n", "return va\n"),
    ],
)
def test_where_a_text_ends_anyhow_less_is_evidence(text, suffix, kept):
    assert text[: SuffixRule.of(PREFIX, suffix).overlap(Written.of(text))] == kept


def test_the_rest_of_the_file_is_read_only_once_a_line_repeats_one_behind_the_cursor():
    """What it takes costs as much as a step, and few completions come so far."""
    rule = SuffixRule.of(PREFIX, "    return width * height\n")
    assert rule.cut(Written.of("    height = shape.height\n")) is None
    assert "_lines" not in vars(rule)
    assert rule.cut(Written.of("    height = 1\n    return width * height\n")) is not None
    assert "_lines" in vars(rule)


@pytest.mark.parametrize(
    ("prefix", "suffix", "starts"),
    [
        ("f(", ")\n\n    g()\n", (")",)),
        ("x = 1\n    ", "\n\n\n    return x  \n", ("return x",)),
        ("x = 1\n    ret", "\n    return x\n", ("return x", "urn x")),
        ("x = 1", "\n  \n", ()),
        ("x = 1", "", ()),
    ],
)
def test_a_repeat_begins_like_the_next_line_or_goes_on_like_it(prefix, suffix, starts):
    assert repeats(prefix, suffix) == starts
