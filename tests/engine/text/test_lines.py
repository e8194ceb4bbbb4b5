"""Text cut into lines as it grows."""

from hypothesis import given
from hypothesis import strategies as st

from engine.text.lines import Written, filled_lines, pieces

TEXTS = st.text(st.sampled_from("ab \t\n\r"), max_size=40)


def test_a_line_knows_what_it_says_and_how_deep_it_stands():
    (line,) = filled_lines("\n\n\t  x = 1 \r\n")
    assert (line.text, line.words, line.start) == ("\t  x = 1", "x=1", 2)
    assert (line.space, line.indent) == ("\t  ", 6)


def test_the_last_line_grows_until_its_end():
    written = Written.of("a\n  b")
    growing = written.growing
    assert growing is not None
    assert (growing.text, growing.start, [one.text for one in written.lines]) == ("  b", 2, ["a"])
    written.push("c\n")
    assert [line.text for line in written.lines] == ["a", "  bc"]
    assert written.growing is None
    assert written.at_line_end


@given(TEXTS)
def test_pieces_make_up_the_text_and_end_at_line_ends(text):
    parts = pieces(text)
    assert "".join(parts) == text
    assert all(part.find("\n") in (-1, len(part) - 1) for part in parts)


@given(TEXTS)
def test_every_filled_line_stands_where_it_says(text):
    for line in filled_lines(text):
        assert text.startswith(line.text, line.start)
        assert line.start == 0 or text[line.start - 1] == "\n"
    filled = [line.rstrip() for line in text.split("\n") if line.strip()]
    assert [line.text for line in filled_lines(text)] == filled
