"""Which of the definitions that fit a cursor find room, and what is shown of their files."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from lsp_server.repository.definition_search import Ranked
from lsp_server.repository.definitions import Definition
from lsp_server.repository.store import Stamp, Store

_TIERS = (1_000, 2_000)  # characters
_MOST_FILES = 6  # of a tier


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
