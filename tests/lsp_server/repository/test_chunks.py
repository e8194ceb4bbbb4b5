"""Windows of lines."""

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.repository.chunks import chunks


@given(st.lists(st.sampled_from(["", "  ", "x = 1", "def f():"]), max_size=200))
def test_windows_hold_each_line_that_is_not_blank_once_and_are_never_long(lines):
    windows = list(chunks(lines))
    held = [number for window in windows for number in window]
    assert held == sorted(set(held))
    assert {n for n, line in enumerate(lines) if line.strip()} <= set(held)
    assert all(0 < len(window) <= 40 for window in windows)


def test_a_window_ends_behind_a_blank_line():
    lines = ["x"] * 30 + [""] + ["y"] * 30
    assert list(chunks(lines)) == [range(31), range(31, 61)]
