"""Completion tasks whose answer stands in another file of the project, with that project's files."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from engine.bench.rows import read_rows
from engine.errors import InputError
from engine.request import Buffer

_WANTED = "cross-file task"


@dataclass(frozen=True, slots=True)
class CrossfileTask:
    """A cursor in a file of a released package. `prefix + target + suffix` is the file."""

    id: str
    stratum: str  # cross_file, or random_line, where no other file need be known
    kind: str
    path: str
    prefix: str
    target: str
    suffix: str
    open_buffers: tuple[Buffer, ...]  # what a person would have open, the last import first

    @classmethod
    def from_row(cls, row: dict[str, Any], trees: Path) -> Self:
        """Read a line's object. Raises KeyError, TypeError or ValueError for another form."""
        root = trees / str(row["package_root"])
        names = ("id", "stratum", "kind", "path", "prefix", "target", "suffix")
        opened = [str(path) for path in reversed(row["open_files"])]
        buffers = tuple(Buffer(path, _text(root / path)) for path in opened)
        return cls(**{name: str(row[name]) for name in names}, open_buffers=buffers)


def load_crossfile_tasks(
    path: Path, trees: Path, count: int | None = None, stratum: str | None = None
) -> list[CrossfileTask]:
    """Read a set, or `count` tasks of each stratum, always the same. Raises InputError.

    A larger draw begins with the tasks of a smaller one.
    """
    tasks = read_rows(path, lambda row: CrossfileTask.from_row(row, trees), _WANTED)
    strata: dict[str, list[CrossfileTask]] = {}
    for task in tasks:
        strata.setdefault(task.stratum, []).append(task)
    if stratum is not None:
        if stratum not in strata:
            raise InputError(f"{path} holds no task of the stratum {stratum}")
        strata = {stratum: strata[stratum]}
    if count is not None:
        for drawn in strata.values():
            random.Random(0).shuffle(drawn)  # noqa: S311 - a draw, no secret
    return [task for drawn in strata.values() for task in drawn[:count]]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; name the --trees") from error
