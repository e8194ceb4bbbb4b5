"""What a workspace's index shows for a cursor: definitions first, then chunks that read alike."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from lsp_server.repository.chunk_search import ChunkSearch, FoundChunk
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.definition_search import DefinitionSearch, Ranked
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store

MOST_CHARS = 6_000  # of all that is shown
_TIERS = (1_000, 2_000)  # characters of definitions
_MOST_FILES = 6  # of a tier
_LEAST_SHARE = 0.12  # of the words' worth, that a chunk must hold


class Shown(NamedTuple):
    """Text of a file, in whole lines."""

    path: str
    text: str
    is_definition: bool


@dataclass(frozen=True)
class Retrieval:
    """Asks the index of one folder; `files` says what may be shown, as of now."""

    store: Store
    files: SourceFiles

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
        definitions = self._definitions(ranked)
        chunks = ChunkSearch(self.store, view, own | opened, edits).best()
        room = MOST_CHARS - sum(len(one.text) for one in definitions)
        return [*definitions, *self._chunks(chunks, definitions, room)]

    def _definitions(self, ranked: Sequence[Ranked]) -> list[Shown]:
        """The best definitions that find room, those of one file together.

        They come in tiers: where a prompt has room for the first alone, it has the best ones.
        """
        may_show = lru_cache(self.is_shown)
        shown: list[Shown] = []
        for room in _TIERS:
            chosen: dict[str, dict[int, str]] = {}
            ranked = self._tier(ranked, room, chosen, may_show)
            shown += (
                Shown(path, _joined(lines), is_definition=True) for path, lines in chosen.items()
            )
        return shown

    def _tier(
        self,
        ranked: Sequence[Ranked],
        room: int,
        chosen: dict[str, dict[int, str]],
        may_show: Callable[[str], bool],
    ) -> list[Ranked]:
        """Choose in the order of their worth until one finds no room; return what is left."""
        for number, one in enumerate(ranked):
            definition, path = one.found
            if path not in chosen and (len(chosen) == _MOST_FILES or not may_show(path)):
                continue
            room -= len(definition.text) + (0 if path in chosen else len(path))
            if room < 0:
                return list(ranked[number:])
            chosen.setdefault(path, {})[definition.line] = definition.text
            room -= self._add_class(one, chosen[path])
        return []

    def _add_class(self, one: Ranked, lines: dict[int, str]) -> int:
        """Have the head of a class stand above its members; the characters that it takes."""
        parent = one.found.definition.parent
        if not parent:
            return 0
        for found in self.store.named_in(one.found.path, parent):
            if found.definition.is_class and found.definition.line not in lines:
                lines[found.definition.line] = found.definition.text
                return len(found.definition.text)
        return 0

    def is_shown(self, path: str) -> bool:
        """Whether a file is as the index has it, and may be shown."""
        stamp = self.files.stamp(path)
        return stamp is not None and stamp == self.store.stamp(path)

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
            if self.is_shown(chunk.path):
                room -= len(text)
                chosen.append(Shown(chunk.path, text, is_definition=False))
        return chosen


def _joined(lines: Mapping[int, str]) -> str:
    return "".join(text for _, text in sorted(lines.items()))


def _is_known(text: str, known: Collection[str]) -> bool:
    """Whether most of the lines are among those that are shown."""
    lines = [line for line in text.split("\n") if line.strip()]
    return 2 * sum(line in known for line in lines) > len(lines)
