"""The beginning of a completion, which is shown while the rest is being written."""

from collections.abc import Callable
from dataclasses import dataclass

from lsp_server.completion.anchor import Anchor
from lsp_server.completion.completion_cache import CompletionCache
from lsp_server.completion.postprocess import Processed
from lsp_server.completion.settled import has_line

FEWEST_SHOWN = 3  # characters: fewer distract
_MOST_TOLD = 2  # times that the text on the screen grows: one at a line, one at the end


@dataclass(frozen=True, slots=True)
class Reader:
    """An editor that is answered with parts.

    It hears at which anchor there is `more` than it was answered with, and where that was the
    `whole` when the completion ended.
    """

    more: Callable[[Anchor], None]
    whole: Callable[[Anchor], None]


class Parts:
    """What is settled of one completion, kept in the cache until the whole of it is there.

    `settle` makes of the model's text what can be shown of it.
    """

    def __init__(
        self,
        anchor: Anchor,
        cache: CompletionCache,
        settle: Callable[[str], Processed],
        reader: Reader,
    ) -> None:
        self.text = ""  # as far as it is kept
        self.is_watched = False  # a part of it stands on the screen
        self._id = ""
        self._anchor = anchor
        self._cache = cache
        self._settle = settle
        self._reader = reader
        self._answered: Anchor | None = None  # the last request that got a part
        self._shown_len = 0  # of that part
        self._num_lines = 0  # that have ended, where it was looked at last
        self._num_told = 0

    def serves(self, anchor: Anchor, completion_id: str, text: str, *, is_late: bool) -> bool:
        """Whether who waits at `anchor` can be shown something: a line, or words where it is late."""
        if is_late or has_line(text):
            self._grow(completion_id, text)
        rests = self._cache.remainders(anchor) if self.text else ()
        return any(len(rest.text.strip()) >= FEWEST_SHOWN for rest in rests)

    def answered(self, anchor: Anchor, text: str) -> None:
        """A request was answered with what was kept at that time."""
        self._answered, self._shown_len = anchor, len(text)
        if len(text) < len(self.text):
            self._tell_more()

    def written(self, completion_id: str, text: str) -> None:
        """There is more of the model's text: if another line has ended, it is shown."""
        num_lines, former = text.count("\n"), self._num_lines
        if self._answered is None or num_lines <= former or self._num_told + 1 >= _MOST_TOLD:
            return
        self._num_lines = num_lines
        if self._grow(completion_id, text):
            self._tell_more()

    def whole(self, made: Processed) -> Processed:
        """The completion has ended as `made`, or as what was shown where that is not its beginning."""
        if self.text and not made.text.startswith(self.text):
            return Processed(self.text)
        return made

    def end(self, made: Processed) -> None:
        """The whole is kept by now."""
        self.text = made.text
        if self._shown_len < len(made.text):
            self._tell_more()
        elif self._answered is not None:
            self._reader.whole(self._answered)

    def drop(self) -> None:
        """The rest will not be written."""
        if self.text:
            self._cache.drop(self._id)

    def _grow(self, completion_id: str, text: str) -> bool:
        """Keep what is settled, if that is more than before."""
        made = self._settle(text)
        is_more = len(made.text) > len(self.text) and made.text.startswith(self.text)
        if made.reason is not None or not is_more or len(made.text.strip()) < FEWEST_SHOWN:
            return False
        self._id, self.text, self._num_lines = completion_id, made.text, text.count("\n")
        self._cache.remember(self._anchor, completion_id, made.text)
        return True

    def _tell_more(self) -> None:
        if self._answered is not None:
            self._num_told += 1
            self._reader.more(self._answered)
