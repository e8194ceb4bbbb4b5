"""A file with changed lines: every other byte stays, and line ends are the file's own."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher, diff_bytes, unified_diff
from pathlib import Path
from stat import S_IMODE
from typing import NamedTuple, Self

from engine.atomic_write import atomic_write
from engine.errors import InputError
from engine.request import EditOutcome
from lsp_server.cli.source_file import SourceFile, read_bytes

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_LINE_END = b"\n\\ No newline at end of file\n"  # as git and diff print it


class _Row(NamedTuple):
    text: bytes
    end: bytes  # of the last row b""

    @property
    def shown(self) -> bytes:
        """The row in a diff, whose lines end with LF."""
        return self.text + (b"\n" if self.end == b"\r" else self.end)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file before and after a change of its lines."""

    path: Path
    before: bytes
    after: bytes

    @classmethod
    def of(cls, source: SourceFile, edit: EditOutcome) -> Self:
        """Apply a change. Raises InputError if that would mix UTF-8 with another encoding."""
        mark = _BYTE_ORDER_MARK if source.content.startswith(_BYTE_ORDER_MARK) else b""
        rows = _rows(source.content.removeprefix(mark))
        old = rows[edit.first : edit.end]
        try:
            new = list(_changed(old, edit.lines, source.line_end.encode()))
        except UnicodeDecodeError:
            raise InputError(f"{source.path}: these lines are not UTF-8") from None
        if source.is_damaged and not "".join(edit.lines).isascii():
            raise InputError(f"{source.path} is not UTF-8, so only ASCII can be added to it")
        after = _ended([*rows[: edit.first], *new, *rows[edit.end :]], source.line_end.encode())
        return cls(source.path, source.content, mark + b"".join(map(b"".join, after)))

    def diff(self, name: str) -> bytes:
        """Return a unified diff, as `git apply` and `patch -p1` take it."""
        sides = [[row.shown for row in _rows(text)] for text in (self.before, self.after)]
        old, new = (side if side[-1] else side[:-1] for side in sides)
        shown = os.fsencode(name.lstrip("/"))
        lines = diff_bytes(unified_diff, old, new, b"a/" + shown, b"b/" + shown)
        return b"".join(line if line.endswith(b"\n") else line + _NO_LINE_END for line in lines)

    def write(self) -> None:
        """Replace the file, unless it has changed. Raises InputError."""
        path = self.path.resolve()  # a link stays a link
        require_writable(path)
        try:
            with atomic_write(path) as file:
                found = path.stat()
                with suppress(OSError):  # only root may give a file away
                    os.fchown(file.fileno(), found.st_uid, found.st_gid)
                os.fchmod(file.fileno(), S_IMODE(found.st_mode))
                file.write(self.after)
                if read_bytes(path) != self.before:
                    raise InputError(f"{self.path} changed meanwhile, so it is not written")
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from None


def require_writable(path: Path) -> None:
    """Raise InputError for a file that is read-only: replacing it would be possible."""
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written")


def _rows(content: bytes) -> list[_Row]:
    parts = re.split(rb"(\r\n|\r|\n)", content)
    return [_Row(*row) for row in zip(parts[::2], [*parts[1::2], b""], strict=True)]


def _changed(old: Sequence[_Row], new: Sequence[str], line_end: bytes) -> Iterator[_Row]:
    """Yield `new` as rows; an unchanged one keeps its end. Raises UnicodeDecodeError."""
    texts = [row.text.decode() for row in old]
    for tag, first, end, start, stop in SequenceMatcher(
        None, texts, new, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            yield from old[first:end]
        else:
            yield from (_Row(line.encode(), line_end) for line in new[start:stop])


def _ended(rows: Sequence[_Row], line_end: bytes) -> Iterable[_Row]:
    """Yield rows of which all but the last have an end."""
    *above, last = rows or [_Row(b"", b"")]
    yield from (row if row.end else _Row(row.text, line_end) for row in above)
    yield _Row(last.text, b"")
