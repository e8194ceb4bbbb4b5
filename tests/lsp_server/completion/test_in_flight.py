"""Completions that the host is writing: whom they may serve."""

import pytest

from lsp_server.completion.in_flight import fits


@pytest.mark.parametrize(
    ("typed", "text", "is_finished", "expected"),
    [
        ("", "", False, True),
        ("fo", "foo", False, True),
        ("foo", "fo", False, True),  # it may still print it
        ("foo", "fo", True, False),
        ("foo", "foo", True, False),
        ("foo", "foo", False, True),
        ("fa", "foo", False, False),
    ],
)
def test_a_running_generation_is_joined_while_it_fits(typed, text, is_finished, expected):
    assert fits(typed, text, is_finished=is_finished) is expected
