"""The text around a cursor, as the questions to the index see it: names, how near they are, types."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from engine.host.protocol import RepositorySnippet
from engine.names import block_heads, names_in
from engine.stopping.brackets import statement
from lsp_server.repository.imports import Imported, imports

OnProgress = Callable[[int, int, str], None]  # files read, of how many; what to say once all are
# Of what was found, what may go out by now.
Sendable = Callable[[], Awaitable[tuple[RepositorySnippet, ...]]]
_NEAR = 20  # lines above and below
_FAR = 2_000  # lines above and below, that are looked through for a name's type
_TOP = 3_000  # lines of the file, that are looked through for imports
_LONGEST = 1_000  # characters of a line, that are looked at: a longer one was made by a program
_MOST_CHARS = 4_000  # in front of the cursor, that are looked through for an open bracket
_BRACKET = re.compile(r"[()\[\]{}]")
_CHAIN = re.compile(r"((?:[^\W\d]\w*(?:\([^()]*\))?\.)*)([^\W\d]\w*)?\Z")
_CALL = re.compile(r"([^\W\d][\w.]*)\s*\(\Z")
_MOST_HEAD = 12  # lines
_LONGEST_CHAIN = 200  # characters: the patterns look at each of them from each of them
_HEAD = re.compile(r"\s*(?:async\s+)?(?:def|class|func|fn|function|impl|interface|struct)\b")
_BASES = re.compile(r"\s*class\s+\w+\s*\(([^)]*)")
_CLASS_NAME = re.compile(r"[A-Z]\w+")


@dataclass(frozen=True)
class CursorView:
    """Lines before the cursor, the last one up to it, and behind it, the rest of that line first."""

    path: str
    before: Sequence[str]
    behind: Sequence[str]

    @property
    def line(self) -> str:
        """The end of the cursor's line up to it."""
        return self.before[-1][-_LONGEST:] if self.before else ""

    @cached_property
    def imports(self) -> Mapping[str, Imported]:
        """What the file imports by other lines than the cursor's, by its names here."""
        return imports((*_cut(self.before[:-1][:_TOP]), *_cut(self.behind[1:_TOP])), self.path)

    @cached_property
    def chain(self) -> tuple[str, ...]:
        """The names in front of the cursor that end at dots: `self.store.pu|` is self, store."""
        found = _CHAIN.search(self.line[-_LONGEST_CHAIN:])
        parts = re.sub(r"\([^()]*\)", "", found[1]).split(".") if found else []
        return tuple(part for part in parts if part)

    @cached_property
    def callee(self) -> tuple[str, ...]:
        """The names of the call whose brackets the cursor stands in, if it does."""
        depth, text = 0, "\n".join([*self._above[: _NEAR - 1][::-1], self.line])[-_MOST_CHARS:]
        for bracket in reversed([*_BRACKET.finditer(text)]):
            depth += 1 if bracket[0] in ")]}" else -1
            if depth < 0:
                end = bracket.end()
                found = _CALL.search(text[max(0, end - _LONGEST_CHAIN) : end])
                return tuple(found[1].split(".")) if found else ()
        return ()

    @cached_property
    def heads(self) -> list[str]:
        """The lines that open the blocks around the cursor, with the rest of their brackets."""
        found, lines = [], [self.line, *self._above]
        for number, line in block_heads(lines):
            if _HEAD.match(line):
                below = lines[max(0, number - _MOST_HEAD + 1) : number + 1][::-1]
                found.append("\n".join(statement(below, "(", ")")))
        return found

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The names near the cursor and what they are worth: 1 on its line, less far from it."""
        weights: dict[str, float] = {}
        above = [(0, self._finished), *enumerate(self._above[: _NEAR - 1], start=1)]
        below = enumerate(_cut(self.behind[:_NEAR]), start=1)
        for head in self.heads:
            _raise(weights, names_in(head), 0.5)
        for distance, line in (*above, *below):
            _raise(weights, names_in(line), 1 / (1 + distance / 4))
        return weights

    def types(self, name: str) -> list[str]:
        """The classes that a name may be of, by annotations and calls of constructors near it."""
        if name in ("self", "cls"):
            return self._own_classes
        pattern = re.compile(
            rf"\b{re.escape(name)}\s*:\s*([^=\n,)]+)|\b{re.escape(name)}\s*=\s*(?:await\s+)?([\w.]+)\("
        )
        found: list[str] = []
        for line in (*self._above, *_cut(self.behind[:_FAR])):
            for match in pattern.finditer(line) if name in line else ():
                found += classes_in(match[1] or (match[2] or "").rpartition(".")[2])
        return list(dict.fromkeys(found))

    def makers(self, name: str) -> list[str]:
        """The functions whose result a name is."""
        pattern = re.compile(rf"\b{re.escape(name)}\s*=\s*(?:await\s+)?(?:[\w.]*\.)?(\w+)\(")
        lines = (line for line in self._above if name in line)
        return [match[1] for line in lines for match in pattern.finditer(line)][:2]

    @cached_property
    def _above(self) -> Sequence[str]:
        """The lines above that of the cursor, the nearest first."""
        return _cut(self.before[-_FAR:-1][::-1])

    @property
    def _finished(self) -> str:
        """The cursor's line without the word that is being typed."""
        return re.sub(r"\w+\Z", "", self.line)

    @cached_property
    def _own_classes(self) -> list[str]:
        """The bases of the class around the cursor."""
        bases = next((found[1] for head in self.heads if (found := _BASES.match(head))), "")
        return classes_in(bases)


def _cut(lines: Iterable[str]) -> list[str]:
    return [line if len(line) <= _LONGEST else line[:_LONGEST] for line in lines]


def classes_in(annotation: str) -> list[str]:
    """The names in an annotation that look like those of classes."""
    return _CLASS_NAME.findall(annotation)


def _raise(weights: dict[str, float], names: Iterable[str], weight: float) -> None:
    for name in names:
        weights[name] = max(weight, weights.get(name, 0.0))


class Question(NamedTuple):
    """A cursor in a document: its file, the text, the files that are open, what was edited last."""

    uri: str
    path: Path
    lines: Sequence[str]
    row: int
    character: int
    opened: frozenset[Path]
    is_quick: bool  # a prompt is read so quickly that another choice is no matter
    edits: tuple[str, ...] = ()  # lines, in any document

    def view(self, path: str) -> CursorView:
        """The text around the cursor, in the file that `path` names within its folder."""
        line = self.lines[self.row]
        before = [*self.lines[: self.row], line[: self.character]]
        return CursorView(path, before, [line[self.character :], *self.lines[self.row + 1 :]])
