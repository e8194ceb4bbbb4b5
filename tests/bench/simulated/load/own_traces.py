"""Traces for use without a replay set: functions of foregram's own source."""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from engine.request import Buffer
from tests.bench.simulated.traces import Trace

_FEWEST_CHARS, _MOST_CHARS = 60, 400  # characters of a body, as in a replay set
_PER_FILE = 3
_OPEN = 8  # other open files
_MOST_OPEN_CHARS = 20_000  # characters of each open file


@cache  # parses all of the source
def own_traces() -> Sequence[Trace]:
    """Return the bodies of functions, with the other files of their folder open."""
    root = Path(__file__).parents[4]
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
