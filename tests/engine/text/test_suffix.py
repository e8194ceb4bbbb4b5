"""Reaching the suffix: what counts as evidence, and where the text is cut."""

import pytest

from engine.text.lines import Written
from engine.text.suffix import SuffixRule

PREFIX = "def area(shape):\n    width = shape.width\n"


def cut(text: str, suffix: str, prefix: str = PREFIX) -> str | None:
    """The text before the suffix, judged at each of its line ends."""
    rule = SuffixRule.of(prefix, suffix)
    for end, character in enumerate(text, 1):
        if character == "\n":
            place = rule.cut(Written.of(text[:end]))
            if place is not None:
                return text[:place]
    return None


def overlap(text: str, suffix: str) -> str:
    rule = SuffixRule.of(PREFIX, suffix)
    return text[: rule.overlap(Written.of(text))]


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


def test_one_line_that_says_something_is_evidence():
    suffix = "    return width * height\n    # unreachable\n"
    assert cut("    height = 2\n    return width * height\n", suffix) == "    height = 2\n"


def test_white_space_inside_a_line_does_not_matter():
    suffix = "    return width*height\n"
    assert cut("    height = 2\n    return width * height\n", suffix) == "    height = 2\n"


def test_blank_lines_between_the_lines_do_not_matter():
    suffix = "    x = 1\n\n    y = shape\n"
    assert cut("    a = 2\n    x = 1\n    y = shape\n", suffix) == "    a = 2\n"


@pytest.mark.parametrize("suffix", ["}\n", "    )\n  ]\n", "\n", "", "    x\n"])
def test_closing_brackets_and_blank_lines_are_no_evidence(suffix):
    assert cut("    a = 2\n" + suffix + suffix, suffix) is None


def test_a_short_line_is_evidence_only_together_with_the_next():
    suffix = "    else:\n        width = 2\n"
    text = "    if a:\n        b()\n    else:\n"
    assert cut(text + "        c()\n", suffix) is None
    assert cut(text + "        width = 2\n", suffix) == "    if a:\n        b()\n"


def test_a_line_that_the_file_repeats_needs_the_next_one_too():
    prefix = "if a:\n    return False\nif b:\n    return False\n"
    suffix = "    return False\nreturn True\n"
    assert cut("if c:\n    return False\nif d:\n", suffix, prefix) is None
    assert cut("if c:\n    return False\nreturn True\n", suffix, prefix) == "if c:\n"


def test_shifted_lines_need_one_line_more():
    suffix = "\n    total = 0\n    return total + width\n"
    shifted = "    if a:\n        total = 0\n"
    assert cut(shifted + "        total += 1\n", suffix) is None
    assert cut(shifted + "        return total + width\n", suffix) == "    if a:"


def test_a_shifted_repeat_leaves_no_indentation_behind():
    suffix = "    total = 0\n    return total + width\n"
    text = "    a = 1\n        total = 0\n        return total + width\n"
    assert cut(text, suffix) == "    a = 1\n"


def test_indentation_that_belongs_to_the_hole_stays():
    """The cursor stood inside the indentation of the line behind it."""
    suffix = "   return width\n\n    return height\n"
    text = "    if a:\n        return width\n"
    assert cut(text + "\n    return height\n", suffix) == "    if a:\n     "


def test_where_a_text_ends_anyhow_a_closing_bracket_at_its_place_is_the_suffixs():
    assert overlap("    go();\n}\n", "}\n\nint other() {\n") == "    go();\n"
    assert overlap("    go(x)\n", ")\n") == "    go(x)\n"
    assert overlap("    go(x))\n", ")\n") == "    go(x)"


def test_where_a_text_ends_anyhow_a_repeat_of_all_that_follows_is_trimmed():
    assert overlap("return va\n", "a\n") == "return v"
    assert overlap("return va\n", "a\nb\nc\nd\ne\nf\n") == "return va\n"


def test_the_rest_of_the_file_is_read_only_once_a_line_repeats_one_behind_the_cursor():
    """What it takes costs as much as a step, and few completions come so far."""
    rule = SuffixRule.of(PREFIX, "    return width * height\n")
    assert rule.cut(Written.of("    height = shape.height\n")) is None
    assert "_lines" not in vars(rule)
    assert rule.cut(Written.of("    height = 1\n    return width * height\n")) is not None
    assert "_lines" in vars(rule)
