"""A text for a person to type: an insertion of a replay set, and the files around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from engine.bench.task_sets import ReplayItem, load_replay_items
from engine.errors import InputError
from engine.request import Buffer
from tests.bench.tasks import is_inside

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
