"""What an index is asked about: a cursor, in the text as it stands in the editor."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

OnProgress = Callable[[int, int, str], None]  # files read, of how many; what to say once all are


class Question(NamedTuple):
    """A cursor in a document: its file, the text, and the files that are open."""

    uri: str
    path: Path
    lines: Sequence[str]
    row: int
    character: int
    opened: frozenset[Path]
    is_quick: bool  # a prompt is read so quickly that another choice is no matter
