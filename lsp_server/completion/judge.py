"""Whether a line stays whole with an insertion: its brackets, its quotes, its statement."""

from functools import cached_property

from lsp_server.completion.cursor_context import LONGEST_SIDE, MOST_HEAD, CursorContext
from lsp_server.prompt.brackets import CLOSERS, Balance, balance
from lsp_server.prompt.comments import UNPAIRED_CLOSERS
from lsp_server.prompt.text_place import is_header


class LineJudge:
    """Judges by the cursor's line alone: for languages without a grammar."""

    def __init__(self, context: CursorContext) -> None:
        self._context, self._signs = context, context.comment_signs
        self._before, self._rest = context.before[-LONGEST_SIDE:], context.rest[:LONGEST_SIDE]

    def prepare(self) -> None:
        """Count what is open around the cursor."""
        _ = self._was, self._text

    @cached_property
    def _was(self) -> Balance:
        return balance(self._before + self._rest, self._signs)

    @cached_property
    def _text(self) -> Balance | None:
        """What the text leaves open, which an insertion may close, and closes too much."""
        return None if self._context.is_cut else self._context.balance()

    def accepts(self, text: str, replaced: int) -> bool:
        """Whether brackets, quotes and the statement's end are as whole as before."""
        rest = self._rest[replaced:].strip()
        now = balance(self._before + text + self._rest[replaced:], self._signs)
        own = range(len(self._before), len(self._before) + len(text))
        return not (
            len(now.open) > len(self._was.open)
            or any(start in own for start in now.starts)
            or (now.quote and not self._was.quote)
            or self._closes_otherwise(now)
            or (text.rstrip().endswith(";") and self._goes_on(rest))
            or (not rest and self._ends_in_header(text))
        )

    @property
    def missing_brackets(self) -> str:
        """What would close the brackets before the cursor, the innermost first, if any is open."""
        is_whole = self._text is not None and not self._text.open
        head = balance(self._context.head[-MOST_HEAD:], self._signs)
        return "" if is_whole else head._replace(quote=None).closers

    @property
    def missing_ends(self) -> list[str]:
        """What would end a string or a comment that may be open before the cursor."""
        ends, quote = self._context.text_ends, balance(self._before, self._signs).quote
        return [*ends, quote] if quote else ends

    def _closes_otherwise(self, now: Balance) -> bool:
        """What stands behind closes something else than before, or more is closed than was open."""
        if self._context.language_id in UNPAIRED_CLOSERS:
            return False
        if self._text is None:
            return False
        was, text = self._was.surplus, self._text
        return not was - text.surplus <= now.surplus <= was + len(text.open)

    def _goes_on(self, rest: str) -> bool:
        """What stands behind belongs to a statement that has not ended."""
        return bool(rest) and rest[0] not in CLOSERS + ";," and not rest.startswith(self._signs)

    def _ends_in_header(self, text: str) -> bool:
        """The text begins a block and nothing in it, unless the user has begun that line."""
        *above, last = text.split("\n")
        return bool(above or not self._before.strip()) and is_header(last)
