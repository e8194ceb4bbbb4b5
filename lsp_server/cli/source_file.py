"""Files and cursors as the command line names them. The engine sees only LF line ends."""

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from engine.errors import InputError
from lsp_server.documents.line_buffer import LineBuffer, LineEnd

MAX_BYTES = 32 * 2**20  # bytes; far above any source file, and more would take minutes to tokenise
_WHERE = re.compile(r"(?P<path>.+?):(?P<line>[0-9]{1,9})(?::(?P<column>[0-9]{1,9}))?:?", re.DOTALL)
_SPAN = re.compile(r"(?P<path>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's text with LF line ends, and the line end that the file itself prefers."""

    path: Path
    text: str
    line_end: LineEnd = "\n"
    is_damaged: bool = False  # bytes that are not UTF-8 were replaced by U+FFFD
    content: bytes = b""  # as on the disk

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read UTF-8, with or without a byte order mark. Raises InputError for any other file."""
        content = read_bytes(path)
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path} is UTF-16; foregram reads UTF-8")
        if b"\0" in content:
            raise InputError(f"{path} is a binary file")
        try:
            text, is_damaged = content.decode("utf-8-sig"), False
        except UnicodeDecodeError:
            # One letter in an old encoding should cost that letter, not the completion.
            text, is_damaged = content.decode("utf-8-sig", "replace"), True
        buffer = LineBuffer(text)
        return cls(path, "\n".join(buffer.lines), buffer.line_end, is_damaged, content)


@dataclass(frozen=True, slots=True)
class Location:
    """A cursor as compilers print it: FILE:LINE[:COL], both counted from 1."""

    path: Path
    line: int
    column: int | None = None  # the code point behind the cursor; None is the line's end

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read FILE:LINE[:COL]; a file's name may hold colons. Raises InputError."""
        match = _WHERE.fullmatch(text)
        if match is None:
            raise InputError(f"{text!r} names no line; write FILE:LINE or FILE:LINE:COL")
        column = int(match["column"]) if match["column"] else None
        return cls(Path(match["path"]), int(match["line"]), column)

    def offset_in(self, text: str) -> int:
        """Return the characters of `text` before the cursor. Raises InputError if it is outside."""
        lines = text.split("\n")
        if not 1 <= self.line <= len(lines):
            count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
            raise InputError(f"{self.path} has {count}, counted from 1; there is no {self.line}")
        width = len(lines[self.line - 1])
        column = width + 1 if self.column is None else self.column
        if not 1 <= column <= width + 1:
            raise InputError(
                f"{self.path}:{self.line} has columns 1 to {width + 1}; there is no {column}"
            )
        return sum(len(line) + 1 for line in lines[: self.line - 1]) + column - 1


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Lines of a file: FILE, FILE:LINE or FILE:FROM-TO, counted from 1, both ends included."""

    path: Path
    first: int | None = None  # None is the whole file
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a file's name, which may hold colons, and its lines. Raises InputError."""
        match = _SPAN.fullmatch(text)
        if match is None:
            return cls(Path(text))
        first = int(match["first"])
        last = int(match["last"] or first)
        if not 1 <= first <= last:
            raise InputError(f"{text!r} names no lines; write FILE:FROM-TO, counted from 1")
        return cls(Path(match["path"]), first, last)

    def rows_in(self, text: str) -> tuple[int, int]:
        """Return the first row, from 0, and the one after the last. Raises InputError."""
        num_lines = max(1, text.count("\n") + (not text.endswith("\n")))
        if self.first is None or self.last is None:
            return 0, num_lines
        if self.last > num_lines:
            count = "1 line" if num_lines == 1 else f"{num_lines} lines"
            raise InputError(f"{self.path} has {count}; there is no line {self.last}")
        return self.first - 1, self.last


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes. Raises InputError if that is impossible, or they are too many."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path} is not a regular file")
        if found.st_size > MAX_BYTES:
            raise InputError(f"{path} has {found.st_size:,} bytes; at most {MAX_BYTES:,} are read")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no system can hold
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
