"""What a workspace's index shows for a cursor: definitions first, then chunks that read alike."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from lsp_server.repository.chunk_search import ChunkSearch, FoundChunk, WordLookup
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.definition_choice import DefinitionChoice, Shown
from lsp_server.repository.definition_search import DefinitionSearch
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Stamp, Store

MOST_CHARS = 6_000  # of all that is shown
_LEAST_SHARE = 0.12  # of the words' worth, that a chunk must hold


@dataclass(frozen=True)
class Retrieval:
    """Asks the index of one folder; `files` says what may be shown, as of now.

    `on_other` hears of files that are not as the index has them.
    """

    store: Store
    files: SourceFiles
    on_other: Callable[[str, Stamp | None], None] = lambda _path, _stamp: None

    @cached_property
    def _lookup(self) -> WordLookup:
        return WordLookup(self.store)

    def shown(
        self,
        view: CursorView,
        opened: frozenset[str] = frozenset(),
        edits: Sequence[str] = (),
    ) -> list[Shown]:
        """What fits a cursor best, the best first.

        Of the files in `opened` come definitions alone: who has them open looks for the rest there.
        """
        own = frozenset([view.path])
        ranked = DefinitionSearch(self.store, view, own).ranked()
        definitions = DefinitionChoice(self.store, self._stamp).shown(ranked)
        chunks = ChunkSearch(self._lookup, view, own | opened, edits).best()
        room = MOST_CHARS - sum(len(one.text) for one in definitions)
        return [*definitions, *self._chunks(chunks, definitions, room)]

    def stands(self, one: Shown) -> bool:
        """Whether a file is as it was when this was read, and may still be shown."""
        stamp = self.files.stamp(one.path)
        if stamp != one.stamp:
            self.on_other(one.path, stamp)
        return stamp == one.stamp

    def _stamp(self, path: str) -> Stamp | None:
        """What a file is, if that is what the index has, and it may be shown."""
        stamp = self.files.stamp(path)
        if stamp != self.store.stamp(path):
            self.on_other(path, stamp)
            return None
        return stamp

    def _chunks(
        self, found: Sequence[FoundChunk], definitions: Sequence[Shown], room: int
    ) -> list[Shown]:
        """Those above the threshold that find room and say more than the definitions do."""
        known = {line for one in definitions for line in one.text.split("\n")}
        chosen = []
        for chunk, share in found:
            text = chunk.text.strip("\n") + "\n"
            if share < _LEAST_SHARE or len(text) > room or _is_known(text, known):
                continue
            if (stamp := self._stamp(chunk.path)) is not None:
                room -= len(text)
                chosen.append(Shown(chunk.path, text, is_definition=False, stamp=stamp))
        return chosen


def _is_known(text: str, known: Collection[str]) -> bool:
    """Whether most of the lines are among those that are shown."""
    lines = [line for line in text.split("\n") if line.strip()]
    return 2 * sum(line in known for line in lines) > len(lines)
