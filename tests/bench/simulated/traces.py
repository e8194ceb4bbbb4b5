"""A text for a person to type, and the files around it: an insertion, or a function of ours."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from engine.bench.task_sets import ReplayItem, load_replay_items
from engine.errors import InputError
from engine.request import Buffer
from tests.bench.tasks import is_inside

_FEWEST_CHARS, _MOST_CHARS = 60, 400  # characters of a body, as in a replay set
_PER_FILE = 3
_OPEN = 8  # other open files
_MOST_OPEN_CHARS = 20_000  # characters of each open file
_LAST_KEY = re.compile(r"(?:\n[ \t]*|.)\Z")


@dataclass(frozen=True, slots=True)
class Trace:
    """`before`, `approach`, `target` and `suffix` make up the file at `path`.

    The approach is the key before the target's first one, mostly an Enter. The cursor stands before
    it while the server gets ready, so that a person begins in the middle of work.
    """

    id: str
    path: str
    before: str
    approach: str
    target: str
    suffix: str
    open_buffers: tuple[Buffer, ...]

    @classmethod
    def of(cls, item: ReplayItem) -> Self:
        """Make a trace of an insertion.

        Raises InputError if there is nothing to type, or a file would be outside of the workspace.
        """
        if not item.target:
            raise InputError(f"{item.id}: there is nothing to type, its target is empty")
        for path in (item.path, *(buffer.path for buffer in item.open_buffers)):
            if not is_inside(path):
                raise InputError(f"{item.id}: the path {path!r} leads out of the workspace")
        last = _LAST_KEY.search(item.prefix)
        approach = last[0] if last else ""
        before = item.prefix.removesuffix(approach)
        return cls(
            item.id, item.path, before, approach, item.target, item.suffix, item.open_buffers
        )


def load_traces(path: Path, count: int | None = None) -> Sequence[Trace]:
    """Return the first `count` insertions of a replay set. Raises InputError."""
    insertions = [item for item in load_replay_items(path) if item.kind == "completion"]
    if not insertions:
        raise InputError(f"{path} holds no insertion; an edit cannot be typed at one cursor")
    return [Trace.of(item) for item in insertions[:count]]


@cache  # parses all of the source
def own_traces() -> Sequence[Trace]:
    """Return bodies of functions of foregram's own source, with the other files of their folder open."""
    root = Path(__file__).parents[3]
    folders: dict[Path, list[Path]] = {}
    for package in ("engine", "lsp_server"):
        for path in sorted((root / package).rglob("*.py")):
            folders.setdefault(path.parent, []).append(path)
    read = {path: path.read_text("utf-8") for paths in folders.values() for path in paths}
    return [
        trace
        for folder, paths in folders.items()
        for path in paths
        for trace in _traces(path, root, [one for one in paths if one != path], read)
    ]


def _traces(
    path: Path, root: Path, others: Sequence[Path], read: dict[Path, str]
) -> Iterator[Trace]:
    def name(one: Path) -> str:
        return one.relative_to(root).as_posix()

    buffers = tuple(Buffer(name(one), read[one][:_MOST_OPEN_CHARS]) for one in others[:_OPEN])
    bodies = [one for one in _bodies(read[path]) if _FEWEST_CHARS <= len(one[1]) <= _MOST_CHARS]
    for before, target, suffix in bodies[:_PER_FILE]:
        line = before.count("\n") + 1
        head, _, indent = before.rpartition("\n")
        yield Trace(
            f"{name(path)}:{line}", name(path), head, f"\n{indent}", target, suffix, buffers
        )


def _bodies(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the text before, in and behind each function's body of more than one line."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first, last = node.body[0], node.body[-1]
        if first.lineno > node.lineno and last.end_lineno and last.end_lineno > first.lineno:
            start = sum(map(len, lines[: first.lineno - 1])) + first.col_offset
            end = sum(map(len, lines[: last.end_lineno])) - 1
            yield text[:start], text[start:end], text[end:]
