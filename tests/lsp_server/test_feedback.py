"""What clients tell of items: which completion, and up to where."""

import pytest

from lsp_server.feedback import Item, read


@pytest.mark.parametrize(
    ("arguments", "utf16_len", "end"),
    [
        (["id", 10], 3, 4),  # two characters of the completion were typed before
        (["id", 10], 10, 10),
        (["id"], 3, 2),
        (["id", None], 3, 2),
    ],
)
def test_a_part_ends_where_its_completion_says_in_code_points(arguments, utf16_len, end):
    """Each line end is one of them."""
    told = {"insertText": "🙂a\r\nb = 1", "command": {"arguments": arguments}}
    assert read(told, Item).end_of(utf16_len) == end
