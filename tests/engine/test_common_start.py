"""Two sequences are compared in blocks, from either end."""

from hypothesis import given
from hypothesis import strategies as st

from engine.common_start import common_ends, common_start

texts = st.text("ab", max_size=9)
paddings = st.sampled_from(["", "c" * 4095, "c" * 4096, "cd" * 5000])


@given(texts, texts, paddings)
def test_the_common_beginning_is_the_longest(one, other, padding):
    one, other = padding + one, padding + other
    length = common_start(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or length == len(one)


@given(texts, texts, paddings)
def test_the_common_end_is_the_longest_of_what_the_beginning_leaves(one, other, padding):
    start, length = common_ends(one + padding, other + padding)
    left, others_left = (one + padding)[start:], (other + padding)[start:]
    assert length == common_start(left[::-1], others_left[::-1])
