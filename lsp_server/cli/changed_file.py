"""A file with changed lines: every other byte stays, and line ends are the file's own."""

import os
from contextlib import suppress
from dataclasses import dataclass
from difflib import diff_bytes, unified_diff
from pathlib import Path
from stat import S_IMODE
from typing import Self

from lsprotocol import types

from engine.atomic_write import atomic_write
from engine.errors import InputError
from engine.request import EditOutcome
from lsp_server.cli.source_file import SourceFile, read_bytes
from lsp_server.documents.document import Document
from lsp_server.documents.line_buffer import LineBuffer, differences
from lsp_server.edits.text_edit import text_edit

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_LINE_END = b"\n\\ No newline at end of file\n"  # as git and diff print it


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file before and after a change of its lines."""

    path: Path
    before: bytes
    after: bytes

    @classmethod
    def of(cls, source: SourceFile, change: EditOutcome) -> Self:
        """Apply a change. Raises InputError if that would mix UTF-8 with another encoding."""
        mark = _BYTE_ORDER_MARK if source.content.startswith(_BYTE_ORDER_MARK) else b""
        text = source.content.removeprefix(mark).decode("utf-8", "surrogateescape")
        document = Document(types.TextDocumentItem("", "", 1, text), 1).snapshot
        old = document.lines[change.first : change.end]
        if source.is_damaged and not "".join((*old, *change.lines)).isascii():
            what = "these lines are not UTF-8, or would become so in a file that is not"
            raise InputError(f"{source.path}: {what}")
        buffer = LineBuffer(text)
        for splice in differences(old, change.lines):  # the last one first, so that rows stay
            first, end = change.first + splice.start, change.first + splice.end
            edit = text_edit(EditOutcome(first, end, splice.lines), document, source.line_end)
            buffer.apply(edit.range, edit.new_text)
        new = buffer.text if text else buffer.text + source.line_end  # no line end was there
        return cls(source.path, source.content, mark + new.encode("utf-8", "surrogateescape"))

    def diff(self, name: str) -> bytes:
        """Return a unified diff, as `git apply` and `patch -p1` take it."""
        old, new = map(_shown, (self.before, self.after))
        shown = os.fsencode(name.lstrip("/"))
        lines = diff_bytes(unified_diff, old, new, b"a/" + shown, b"b/" + shown)
        return b"".join(line if line.endswith(b"\n") else line + _NO_LINE_END for line in lines)

    def write(self) -> None:
        """Write the new text, unless the file has changed. Raises InputError."""
        path = self.path.resolve()  # a link stays a link
        require_writable(path)
        try:
            has_other_names = path.stat().st_nlink > 1
            (self._overwrite if has_other_names else self._replace)(path)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from None

    def _replace(self, path: Path) -> None:
        with atomic_write(path) as file:
            found = path.stat()
            with suppress(OSError):  # only root may give a file away
                os.fchown(file.fileno(), found.st_uid, found.st_gid)
            os.fchmod(file.fileno(), S_IMODE(found.st_mode))
            file.write(self.after)
            self._require_unchanged(path)

    def _overwrite(self, path: Path) -> None:
        self._require_unchanged(path)
        with path.open("r+b") as file:
            file.write(self.after)
            file.truncate()

    def _require_unchanged(self, path: Path) -> None:
        if read_bytes(path) != self.before:
            raise InputError(f"{self.path} changed meanwhile, so it is not written")


def require_writable(path: Path) -> None:
    """Raise InputError for a file that is read-only: replacing it would be possible."""
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written")


def _shown(content: bytes) -> list[bytes]:
    """Split into a diff's lines, which end with LF."""
    lines = content.splitlines(keepends=True)
    return [line[:-1] + b"\n" if line.endswith(b"\r") else line for line in lines]
