"""What a workspace's index shows for a cursor, and for how long that stays.

Definitions come first, then chunks that read alike.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from engine.steady_lines import STEADY_LINES, last_anchor
from lsp_server.repository.chunk_search import ChunkSearch, FoundChunk, WordLookup
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.definition_search import DefinitionSearch, Ranked
from lsp_server.repository.definitions import Definition
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Stamp, Store

_TIERS = (1_000, 2_000)  # characters of definitions
_MOST_FILES = 6  # of a tier
_MOST_DOCUMENTS = 32  # whose last choice is known
MOST_CHARS = 6_000  # of all that is shown
_LEAST_SHARE = 0.12  # of the words' worth, that a chunk must hold


class Shown(NamedTuple):
    """Text of a file, in whole lines, and what the file was when it was read."""

    path: str
    text: str
    is_definition: bool
    stamp: Stamp


class DefinitionChoice:
    """Chooses for one cursor; `stamp_of` is None for a file that may not be shown."""

    def __init__(self, store: Store, stamp_of: Callable[[str], Stamp | None]) -> None:
        self._store = store
        self._stamp_of = cache(stamp_of)
        self._head_of = cache(self._head)

    def shown(self, ranked: Sequence[Ranked]) -> list[Shown]:
        """The best definitions that find room, those of one file together.

        They come in tiers: where a prompt has room for the first alone, it has the best ones.
        """
        shown: list[Shown] = []
        for room in _TIERS:
            chosen: dict[str, dict[int, str]] = {}
            ranked = self._tier(ranked, room, chosen)
            for path, lines in chosen.items():
                if (stamp := self._stamp_of(path)) is not None:
                    text = "".join(line for _, line in sorted(lines.items()))
                    shown.append(Shown(path, text, is_definition=True, stamp=stamp))
        return shown

    def _tier(
        self, ranked: Sequence[Ranked], room: int, chosen: dict[str, dict[int, str]]
    ) -> Sequence[Ranked]:
        """Choose in the order of their worth until one finds no room; return what is left."""
        for number, one in enumerate(ranked):
            definition, path = one.found
            if path not in chosen and (len(chosen) == _MOST_FILES or self._stamp_of(path) is None):
                continue
            room -= len(definition.text) + (0 if path in chosen else len(path))
            if room < 0:
                return ranked[number:]
            chosen.setdefault(path, {})[definition.line] = definition.text
            room -= self._add_class(one, chosen[path])
        return []

    def _add_class(self, one: Ranked, lines: dict[int, str]) -> int:
        """Have the head of a class stand above its members; the characters that it takes."""
        parent = one.found.definition.parent
        head = self._head_of(one.found.path, parent) if parent else None
        if head is None or head.line in lines:
            return 0
        lines[head.line] = head.text
        return len(head.text)

    def _head(self, path: str, name: str) -> Definition | None:
        """The head of a class."""
        found = (one.definition for one in self._store.named_in(path, name))
        return next((one for one in found if one.is_class), None)


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


@dataclass(frozen=True, slots=True)
class _Choice:
    place: tuple[int, int, frozenset[str]]  # lines above, below, roughly; files not to be shown
    names: tuple[str, ...]
    shown: Sequence[Shown]


class KeptChoices:
    """The last choice of each document. For one thread.

    The prompt begins with it, so another choice has the model read the whole prompt again. So it
    stays while the user types along: until the cursor comes to other lines, or something else
    stands at it that is defined elsewhere, where a prompt is read quickly.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Choice] = OrderedDict()

    def shown(
        self,
        document: str,
        view: CursorView,
        excluded: frozenset[str],
        choose: Callable[[], Sequence[Shown]],
        *,
        stands: Callable[[Shown], bool],
        is_quick: bool,
    ) -> Sequence[Shown]:
        """Return what was chosen, as long as all of it `stands`, or else what `choose` returns."""
        place = (last_anchor(len(view.before) - 1), len(view.behind) // STEADY_LINES, excluded)
        names = (*view.chain, "(", *view.callee)
        kept = self._kept.get(document)
        # One of nothing is none: the index may not have been filled by then.
        if kept is not None and (kept.place != place or not kept.shown):
            kept = None
        if kept is not None and not all(map(stands, kept.shown)):
            kept = None
        if kept is not None and (kept.names == names or not is_quick):
            return kept.shown
        chosen = choose()
        if kept is not None and not _is_news(chosen, kept.shown):
            chosen = kept.shown
        self._keep(document, _Choice(place, names, chosen))
        return chosen

    def _keep(self, document: str, choice: _Choice) -> None:
        self._kept[document] = choice
        self._kept.move_to_end(document)
        if len(self._kept) > _MOST_DOCUMENTS:
            self._kept.popitem(last=False)


def _is_news(chosen: Sequence[Shown], kept: Sequence[Shown]) -> bool:
    """Whether the best that is chosen now is not among what is shown."""
    lines = {line for one in kept for line in one.text.split("\n")}
    best = next((one for one in chosen if one.is_definition), None)
    return best is not None and not lines.issuperset(best.text.split("\n"))
