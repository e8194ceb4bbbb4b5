"""The names around a cursor: near it, in the heads of its blocks, and imported by its file."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import Self

from engine.text.brackets import statement
from engine.text.lines import indent_of

_NEAR_LINES = 16  # on each side of the cursor
_IMPORT_LINES = 200  # first lines of a file, searched for imports
_NAME = {least: re.compile(rf"[^\W\d]\w{{{least - 1},}}") for least in (1, 2, 3)}  # by least length
_LEAST_CHARS = 3  # of a name that distinguishes lines
_IMPORT = re.compile(
    r"\s*(?:import|from|using|use|#?\s*include|require|mod)\b|\s*export\b.*\bfrom\b|.*\brequire\("
)
FOLDER_STEMS = ("__init__", "index", "mod")  # a file of this name stands for its folder


@dataclass(frozen=True, slots=True)
class CursorNames:
    """Names around a cursor, and those that its file imports; some are both."""

    near: frozenset[str]
    imported: frozenset[str]

    @classmethod
    def around(cls, before: Sequence[str], behind: Sequence[str]) -> Self:
        """Names in the lines before and behind a cursor."""
        imported = telling_names(_imports([*before, *behind][:_IMPORT_LINES]))
        heads = (line for _, line in block_heads(reversed(before)))
        near = telling_names([*before[-_NEAR_LINES:], *behind[:_NEAR_LINES], *heads])
        return cls(near, imported)

    def imports(self, path: str) -> bool:
        """Whether the file at the cursor seems to import the one at `path`."""
        file = PurePosixPath(path.replace("\\", "/"))
        return (file.parent.name if file.stem in FOLDER_STEMS else file.stem) in self.imported


def telling_names(lines: Iterable[str]) -> frozenset[str]:
    """Return the names of three and more characters."""
    return frozenset(names_in("\n".join(lines), _LEAST_CHARS))


def names_in(text: str, least: int = 1) -> list[str]:
    """Return the names of at least 1, 2 or 3 characters, each as often as it stands there."""
    return _NAME[least].findall(text)


def is_import(line: str) -> bool:
    """Whether a line begins to import something, in most languages."""
    return _IMPORT.match(line) is not None


def block_heads(upwards: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the first filled line and those above that open its blocks, with their numbers."""
    limit = None
    for number, line in enumerate(upwards):
        if line.strip() and (limit is None or indent_of(line) < limit):
            limit = indent_of(line)
            yield number, line
        if limit == 0:
            return


def _imports(lines: Iterable[str]) -> Iterator[str]:
    rest = iter(lines)
    for line in rest:
        if is_import(line):
            yield from statement(chain([line], rest), "({", ")}")
