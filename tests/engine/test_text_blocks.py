"""Texts are cut where most tokenizers cut them, too."""

from hypothesis import given
from hypothesis import strategies as st

from engine.text_blocks import allows_blocks, split_blocks


@given(st.text("ab \n\r\t\f"))
def test_blocks_are_the_text_cut_before_lines_that_are_not_blank(text):
    blocks = split_blocks(text)
    assert "".join(blocks) == text
    assert all(
        block.startswith("\n") is False or number == 0 for number, block in enumerate(blocks)
    )
    assert all(block.endswith("\n") for block in blocks[:-1])


def test_a_tokenizer_that_marks_the_beginning_of_a_text_allows_no_blocks():
    assert allows_blocks("one\ntwo\n", lambda text: [*map(ord, text)])
    assert not allows_blocks("one\ntwo\n", lambda text: [0, *map(ord, text)])
