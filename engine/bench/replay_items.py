"""Replay sets: real insertion points and real edits, with the buffers an editor would have open."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from engine.bench.rows import read_rows
from engine.request import Buffer


@dataclass(frozen=True, slots=True)
class ReplayItem:
    """A cursor in a file of a released package. `prefix + target + suffix` is the file."""

    id: str
    kind: str  # completion or edit
    package: str
    path: str
    prefix: str
    target: str
    suffix: str
    open_buffers: tuple[Buffer, ...]  # most related first; an edit's first is the old version

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """Read a line's object. Raises KeyError or TypeError when it is of another form."""
        buffers = tuple(Buffer(str(b["path"]), str(b["text"])) for b in row["open_buffers"])
        names = ("id", "kind", "package", "path", "prefix", "target", "suffix")
        return cls(**{name: str(row[name]) for name in names}, open_buffers=buffers)


def load_replay_items(path: Path, count: int | None = None) -> list[ReplayItem]:
    """Read the first `count` items of a set, or all. Raises InputError."""
    return read_rows(path, ReplayItem.from_row, "item of a replay set")[:count]
