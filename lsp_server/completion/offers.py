"""What became of suggestions, as the text shows it: whether what they say was written.

Whether a text is accepted, taken word by word or typed is all the same: it was right. One that was
left for another place is neither right nor wrong.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from engine.common_start import common_start
from engine.stopping.brackets import CLOSERS, balance
from lsp_server.completion.anchor import Anchor, typed_since
from lsp_server.completion.completion_cache import CachedCompletion

_MOST_OPEN = 8
_MOST_KNOWN = 100
_SLIP = 2  # characters besides blanks that may stand in place of a text: they may be typing errors


class Note(Protocol):
    """Hears that a suggestion which was said to be so probable was right, or wrong."""

    def __call__(self, confidence: float, *, is_right: bool) -> None:
        """Take it down."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion that was offered as it was made, before any of it was written."""

    completion_id: str
    confidence: float
    text: str
    replaced: int  # characters behind the cursor
    uri: str
    row: int
    before: str  # on the cursor's line
    rest: str
    num_lines: int

    @classmethod
    def at(cls, anchor: Anchor, text: str, replaced: int, name: str, confidence: float) -> Self:
        """Offered at a cursor."""
        snapshot, position = anchor.snapshot, anchor.position
        before, rest = snapshot.prefix_of_line(position), snapshot.rest_of_line(position)
        place = snapshot.uri, position.line, before, rest, len(snapshot.lines)
        return cls(name, confidence, text, replaced, *place)

    def verdict(self, anchor: Anchor) -> bool | None:
        """Whether it was right, as the text before a later cursor shows; None: not known yet."""
        written = self._written(anchor)
        if written is None:
            return None
        if not written.startswith(self.text):
            other = written[common_start(written, self.text) :]
            return False if len("".join(other.split())) > _SLIP else None
        follows = written[len(self.text) :][:1]
        if not _is_in_word(self.text[-1]):
            return True
        return not _is_in_word(follows) if follows else None  # the word may go on

    def _written(self, anchor: Anchor) -> str | None:
        """What stands in its place up to a later cursor; None where all else is not as it was."""
        snapshot, position = anchor.snapshot, anchor.position
        num_added = position.line - self.row
        if snapshot.uri != self.uri or num_added < 0:
            return None
        if len(snapshot.lines) != self.num_lines + num_added:
            return None
        written = typed_since(snapshot.lines, self.row, self.before, position)
        if written is None:
            return None
        rests = self.rest, self.rest[self.replaced :], balance(written).closers + self.rest
        rest = snapshot.rest_of_line(position)
        return written if rest in rests or self._is_typed_over(written, rest) else None

    def _is_typed_over(self, written: str, rest: str) -> bool:
        """Whether closers that stood behind the cursor were typed, which is to step over them."""
        over = self.rest.removesuffix(rest)
        return self.rest.endswith(rest) and written.endswith(over) and not over.strip(CLOSERS)


class Offers:
    """The last suggestions of one editor, until it is known what became of them.

    Only a whole text counts, and each once: a beginning that was written already says that the
    rest is likelier than the model said of the whole.
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._open: deque[Offer] = deque(maxlen=_MOST_OPEN)
        self._known: deque[str] = deque(maxlen=_MOST_KNOWN)  # the completions' ids

    def add(self, anchor: Anchor, one: CachedCompletion) -> None:
        """A completion goes to the editor, where nothing is written since it was asked for."""
        if one.confidence is None or one.completion_id in self._known:
            return
        self._known.append(one.completion_id)
        replaced = one.replaced_chars_after_cursor
        self._open.append(Offer.at(anchor, one.text, replaced, one.completion_id, one.confidence))

    def look(self, anchor: Anchor) -> None:
        """The cursor is here now, and the text before it says what became of some."""
        if anchor.snapshot is anchor.document:  # else the menu's item is not chosen yet
            self._settle(lambda offer: offer.verdict(anchor))

    def accepted(self, completion_id: str) -> None:
        """The whole of one was accepted."""
        self._settle(lambda offer: True if offer.completion_id == completion_id else None)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._keep([offer for offer in self._open if offer.uri != uri])

    def _settle(self, verdict: Callable[[Offer], bool | None]) -> None:
        settled = {offer: verdict(offer) for offer in self._open}
        self._keep([offer for offer in self._open if settled[offer] is None])
        for offer, is_right in settled.items():
            if is_right is not None:
                self._note(offer.confidence, is_right=is_right)

    def _keep(self, offers: list[Offer]) -> None:
        self._open = deque(offers, maxlen=_MOST_OPEN)


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
