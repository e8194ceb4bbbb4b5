"""What becomes of a model's text: what to insert, or why there is nothing."""

from typing import NamedTuple

from lsp_server.reasons import Reason


class Processed(NamedTuple):
    """Text to insert at the cursor in place of characters behind it; or why there is none."""

    text: str = ""
    replaced_chars_after_cursor: int = 0
    reason: Reason | None = None
