"""Chooses what an index shows for a cursor, and how long that choice stays."""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple, TypeVar

from engine.text.lines import STEADY_LINES, last_anchor
from lsp_server.repository.chunk_search import ChunkSearch
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.definition_search import DefinitionSearch
from lsp_server.repository.definitions import Definition
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Excerpt, Stamp, Store

_Kept = TypeVar("_Kept")
_TIERS = (1_000, 2_000)  # characters of definitions in each tier
_MOST_FILES = 6  # files in a tier
_MOST_DOCUMENTS = 32  # documents of which something is kept
_MOST_SENT = 24  # files, about three choices: a prompt goes on over that many
_MOST_CHARS = 6_000  # characters shown in all, 5.9 for each of the 1,024 tokens that they may take


class Retrieval:
    """Asks a folder's index. `files` judges what may be shown; `on_other` gets changed files."""

    def __init__(
        self,
        store: Store,
        files: SourceFiles,
        on_other: Callable[[str, Stamp | None], None] = lambda _path, _stamp: None,
    ) -> None:
        self.store, self._files, self._on_other = store, files, on_other
        self._chunks = ChunkSearch(store)

    def shown(self, view: CursorView) -> list[Excerpt]:
        """Return what fits best; only definitions of open files, whose text the host searches."""
        definitions = self._definitions(DefinitionSearch(self.store, view).ranked())
        room = _MOST_CHARS - sum(len(one.text) for one in definitions)
        known = {line for one in definitions for line in one.text.split("\n")}
        chunks = []
        for chunk in self._chunks.best(view):
            text = chunk.text.strip("\n") + "\n"
            if len(text) <= room and not _is_known(text, known) and self.is_current(chunk):
                room -= len(text)
                chunks.append(chunk._replace(text=text))
        return [*definitions, *chunks]

    def is_current(self, one: Excerpt) -> bool:
        """Whether an excerpt's file is unchanged and may still be shown."""
        return self._stamp(one.path, one.stamp) is not None

    def _stamp(self, path: str, known: Stamp | None) -> Stamp | None:
        """Return a file's stamp if it is the known one and the file may be shown."""
        stamp = self._files.stamp(path)
        if stamp == known:
            return stamp
        self._on_other(path, stamp)
        return None

    def _definitions(self, ranked: Sequence[Definition]) -> list[Excerpt]:
        """Return the best definitions, by file, in tiers: a short prompt has room for the first."""
        stamp_of = cache(lambda path: self._stamp(path, self.store.stamp(path)))
        head_of = cache(self._head)
        left = iter(ranked)
        shown: list[Excerpt] = []
        for tier in _TIERS:
            room, chosen = tier, dict[str, dict[int, str]]()  # texts by file and line
            for one in left:
                is_new = one.path not in chosen
                if is_new and (len(chosen) == _MOST_FILES or stamp_of(one.path) is None):
                    continue
                room -= len(one.text) + (len(one.path) if is_new else 0)
                if room < 0:
                    left = chain([one], left)
                    break
                lines = chosen.setdefault(one.path, {})
                lines[one.line] = one.text
                head = head_of(one.path, one.parent) if one.parent else None
                if head is not None and head.line not in lines:
                    lines[head.line] = head.text
                    room -= len(head.text)
            for path, lines in chosen.items():
                if (stamp := stamp_of(path)) is not None:
                    text = "".join(line for _, line in sorted(lines.items()))
                    shown.append(Excerpt(path, text, stamp, is_definition=True))
        return shown

    def _head(self, path: str, name: str) -> Definition | None:
        return next((one for one in self.store.named_in(path, name) if one.is_class), None)


def _is_known(text: str, known: Collection[str]) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    return 2 * sum(line in known for line in lines) > len(lines)


class _Choice(NamedTuple):
    place: tuple[int, int, frozenset[str]]  # lines above and below, rounded; open files
    names: tuple[str, ...]
    shown: Sequence[Excerpt]


class KeptChoices:
    """The last choice for each document. Its prompt begins with it, so a new one costs a full read.

    It stays until the cursor moves to other lines, or to other names if prompts are read quickly.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Choice] = {}  # by document, the newest last

    def last(self, document: str) -> Sequence[Excerpt]:
        """Return the last choice for a document."""
        kept = self._kept.get(document)
        return kept.shown if kept is not None else ()

    def choose(
        self, document: str, view: CursorView, retrieval: Retrieval, *, is_quick: bool
    ) -> None:
        """Keep the last choice if it is current and still fits, or else choose anew."""
        place = (last_anchor(len(view.before) - 1), len(view.behind) // STEADY_LINES, view.opened)
        names = (*view.chain, "(", *view.callee)
        kept = self._kept.get(document)
        # An empty choice is not kept: the index may still be filling.
        if kept is not None and (kept.place != place or not kept.shown):
            kept = None
        if kept is not None and not all(map(retrieval.is_current, kept.shown)):
            kept = None
        if kept is not None and (kept.names == names or not is_quick):
            return
        chosen: Sequence[Excerpt] = retrieval.shown(view)
        if kept is not None and not _is_news(chosen, kept.shown):
            chosen = kept.shown
        _keep(self._kept, document, _Choice(place, names, chosen))


class SentExcerpts:
    """What was sent for each document lately, without its text: a prompt may show it still."""

    def __init__(self) -> None:
        self._sent: dict[str, list[Excerpt]] = {}  # by document, the newest last

    def earlier(self, document: str, chosen: Sequence[Excerpt]) -> list[Excerpt]:
        """Return those of other files than the chosen ones, the latest first."""
        paths = {one.path for one in chosen}
        return [one for one in self._sent.get(document, ()) if one.path not in paths]

    def note(self, document: str, sent: Sequence[Excerpt]) -> None:
        """Keep what was sent, the latest choice first: one excerpt of each file."""
        by_path = {one.path: one._replace(text="") for one in sent}
        _keep(self._sent, document, list(by_path.values())[:_MOST_SENT])


def _keep(kept: dict[str, _Kept], document: str, one: _Kept) -> None:
    """Keep it as the document's newest; beyond `_MOST_DOCUMENTS` the oldest goes."""
    kept.pop(document, None)
    kept[document] = one
    if len(kept) > _MOST_DOCUMENTS:
        del kept[next(iter(kept))]


def _is_news(chosen: Sequence[Excerpt], kept: Sequence[Excerpt]) -> bool:
    """Whether the best new definition is missing from what is shown."""
    lines = {line for one in kept for line in one.text.split("\n")}
    best = next((one for one in chosen if one.is_definition), None)
    return best is not None and not lines.issuperset(best.text.split("\n"))
