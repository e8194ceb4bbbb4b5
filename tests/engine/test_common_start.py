"""Two sequences are compared by halving, from either end."""

from hypothesis import given
from hypothesis import strategies as st

from engine.common_start import common_end, common_start

texts = st.text("ab", max_size=9)


@given(texts, texts)
def test_the_common_beginning_is_the_longest(one, other):
    length = common_start(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or length == len(one)


@given(texts, texts)
def test_the_common_end_is_the_common_beginning_read_backwards(one, other):
    assert common_end(one, other) == common_start(one[::-1], other[::-1])
