"""A session's repository: an index of each folder, loaded when the client is ready."""

import asyncio
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from engine.request import Snippet
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.cells_around import lines_of
from lsp_server.documents.document import Snapshot
from lsp_server.documents.file_path import file_path
from lsp_server.documents.line_buffer import LineBuffer
from lsp_server.language_names import ending_of
from lsp_server.privacy.hidden_files import innermost
from lsp_server.workspace import Workspace

if TYPE_CHECKING:
    from lsp_server.repository.cursor_view import CursorView
    from lsp_server.repository.folder_index import FolderIndex
    from lsp_server.repository.indexer import IndexReport

_MOST_EDITS = 12  # last edited lines that are kept
_EDIT_CHARS = 200  # characters kept of a line
_NEAR_LINES = 20  # lines from the cursor, which the prompt shows anyway


class RecentEdits:
    """The last edited lines by document and number, with the text after the edit."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], str] = {}  # newest last

    def note(self, snapshot: Snapshot, row: int, num_lines: int) -> None:
        """Note lines just edited; `snapshot` is the text after the edit."""
        first = max(row, row + num_lines - _MOST_EDITS)
        for number in range(first, min(row + num_lines, len(snapshot.lines))):
            key = snapshot.uri, number
            self._lines.pop(key, None)
            if snapshot.lines[number].strip():
                self._lines[key] = snapshot.lines[number][:_EDIT_CHARS]
        for key in list(self._lines)[:-_MOST_EDITS]:
            del self._lines[key]

    def far_from(self, uri: str, row: int) -> tuple[str, ...]:
        """Return the lines that are not near a cursor, newest first."""
        edited = reversed(self._lines.items())
        return tuple(
            line
            for (document, number), line in edited
            if document != uri or abs(number - row) > _NEAR_LINES
        )


class WorkspaceFiles:
    """Indexes the workspace's folders, and finds excerpts of their files for a cursor."""

    def __init__(self, workspace: Workspace, on_progress: Callable[[int, int, str], None]) -> None:
        """`on_progress` takes the files read, their total, and a note once all are read."""
        self.is_watched = False  # whether the client reports changed files
        self._workspace = workspace
        self._documents = workspace.documents
        self._on_progress = on_progress
        self._is_ready = False
        self._is_late = False  # whether the last answer was
        self._folders: frozenset[Path] = frozenset()
        self._indexes: dict[Path, FolderIndex] = {}
        self._choice: tuple[object, ...] = ()  # the settings of the indexes
        self._lock = asyncio.Lock()  # one folder is filled after the other
        self._edits = RecentEdits()

    async def begin(self) -> None:
        """Begin to index, as the client is ready."""
        if self._workspace.settings.repository_globs is not None:
            await asyncio.to_thread(import_module, "lsp_server.repository.folder_index")
        self._is_ready = True
        self._index()

    def enter(self, folders: Iterable[Path]) -> None:
        """Index these folders, and no others, as the settings say once the client is ready."""
        self._folders = frozenset(folders)
        self._index()

    def _index(self) -> None:
        settings = self._workspace.settings
        wanted = settings.repository_globs
        choice = wanted, settings.allow_secret_files, settings.cache_folder
        is_on = self._is_ready and wanted is not None and settings.enable
        folders = self._folders if is_on else frozenset()
        for folder in self._indexes.keys() - (folders if choice == self._choice else ()):
            self._indexes.pop(folder).close()
        self._choice = choice
        for folder in folders - self._indexes.keys():
            if _is_project(folder):
                from lsp_server.repository.folder_index import FolderIndex

                self._indexes[folder] = FolderIndex(folder, settings, self._report, self._lock)

    def _report(self, report: "IndexReport") -> None:
        self._on_progress(report.done, report.total, report.note)

    def changed(self, uris: Iterable[str]) -> None:
        """Note that files of these URIs changed, appeared or disappeared."""
        uris = tuple(uris)
        for index in self._indexes.values():
            index.updates.changed(uris)

    def look(self) -> None:
        """Look for changed files at a sign of the user, if the client watches none."""
        for index in () if self.is_watched else self._indexes.values():
            index.updates.look()

    def edited(self, uri: str, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Note the edits of a document, which are already in its text."""
        snapshot = self._documents.snapshot(uri)
        if not self._indexes or not isinstance(snapshot, Snapshot):
            return
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                num_lines = len(LineBuffer(change.text).lines)
                self._edits.note(snapshot, change.range.start.line, num_lines)

    async def shown(self, anchor: Anchor, *, is_quick: bool) -> tuple[Snippet, ...]:
        """Return snippets that may be sent. `is_quick`: the host reads a prompt in a moment."""
        self.look()
        uri = self._documents.notebook_of(anchor.document.uri) or anchor.document.uri
        path = file_path(uri)
        folder = None if path is None else innermost(path, self._indexes)
        if path is None or folder is None:
            return ()
        index, view = self._indexes[folder], self._view(anchor, path, folder)
        found = await index.shown(uri, view, is_quick=is_quick)
        self._is_late = index.is_late
        is_asked = self._indexes.get(folder) is index  # the folder was not left meanwhile
        return found if is_asked else ()

    @property
    def trouble(self) -> str:
        """Why the last question has no answer or files are not followed; "" if all is well."""
        late = "no answer came in time" if self._is_late else ""
        return next(filter(None, (index.trouble for index in self._indexes.values())), late)

    @property
    def problem(self) -> str:
        """Why the files are not indexed; "" if they are, or are not meant to be."""
        problems = (index.updates.problem for index in self._indexes.values())
        return next(filter(None, problems), "")

    def close(self) -> None:
        """Close all indexes when the editor leaves."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()

    def _view(self, anchor: Anchor, path: Path, folder: Path) -> "CursorView":
        from lsp_server.repository.cursor_view import CursorView

        document, lines, cells = anchor.document, anchor.snapshot.lines, anchor.cells
        row, character = anchor.position.line, anchor.position.character
        is_cell = bool(self._documents.notebook_of(document.uri))
        ending = ending_of(document.language_id) if is_cell else ""  # that of the cell's code
        files = (file_path(one.uri) for one in self._documents.snapshots())
        opened = (file for file in files if file is not None and file.is_relative_to(folder))
        return CursorView(
            path=path.relative_to(folder).as_posix() + ending,
            before=[*lines_of(self._documents, cells.above), *lines[:row], lines[row][:character]],
            behind=[
                lines[row][character:],
                *lines[row + 1 :],
                *lines_of(self._documents, cells.below),
            ],
            opened=frozenset(file.relative_to(folder).as_posix() for file in opened),
            edits=self._edits.far_from(document.uri, row),
        )


def _is_project(folder: Path) -> bool:
    """Whether a folder may be a repository: a home folder and those above it are not."""
    return folder.is_dir() and folder not in (Path.home(), *Path.home().parents)
