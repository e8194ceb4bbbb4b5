"""One session's access to the index of its workspace's files.

The index is loaded only if it is wanted, once the client is ready, so that no start waits for it.
"""

import asyncio
from collections import OrderedDict
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
from lsp_server.documents.line_buffer import LINE_END
from lsp_server.language_names import ending_of
from lsp_server.workspace import Workspace

_MOST_EDITS = 12  # last edited lines that are kept
_EDIT_CHARS = 200  # characters kept of a line
_NEAR_LINES = 20  # lines from the cursor, which the prompt shows anyway


class RecentEdits:
    """The last edited lines by document and number, with the text after the edit."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[str, int], str] = OrderedDict()  # newest last

    def note(self, snapshot: Snapshot, row: int, num_lines: int) -> None:
        """Note lines just edited; `snapshot` is the text after the edit."""
        first = max(row, row + num_lines - _MOST_EDITS)
        for number in range(first, min(row + num_lines, len(snapshot.lines))):
            key = snapshot.uri, number
            self._lines.pop(key, None)
            if snapshot.lines[number].strip():
                self._lines[key] = snapshot.lines[number][:_EDIT_CHARS]
        while len(self._lines) > _MOST_EDITS:
            self._lines.popitem(last=False)

    def far_from(self, uri: str, row: int) -> tuple[str, ...]:
        """Return the lines that are not near a cursor, newest first."""
        edited = reversed(self._lines.items())
        return tuple(
            line
            for (document, number), line in edited
            if document != uri or abs(number - row) > _NEAR_LINES
        )


if TYPE_CHECKING:
    from lsp_server.repository.cursor_view import Question
    from lsp_server.repository.repository import Repository


class WorkspaceFiles:
    """A session's repository, and the questions to it."""

    def __init__(self, workspace: Workspace, on_progress: Callable[[int, int, str], None]) -> None:
        self.is_watched = False  # whether the client reports changed files
        self._workspace = workspace
        self._documents = workspace.documents
        self._on_progress = on_progress
        self._is_ready = False  # whether the client is ready
        self._folders: tuple[Path, ...] | None = None
        self._repository: Repository | None = None
        self._edits = RecentEdits()

    async def begin(self) -> None:
        """Begin to index, as the client is ready."""
        if self._folders is not None and self._workspace.settings.repository_globs is not None:
            await asyncio.to_thread(import_module, "lsp_server.repository.repository")
        self._is_ready = True
        self._index()

    @property
    def is_indexed(self) -> bool:
        """Whether the files are or have been indexed."""
        return self._repository is not None

    def enter(self, folders: Iterable[Path]) -> None:
        """Index these folders as the settings say, once the client is ready."""
        self._folders = tuple(folders)
        self._index()

    def _index(self) -> None:
        if not self._is_ready or self._folders is None:
            return
        settings = self._workspace.settings
        if self._repository is None and settings.repository_globs is not None:
            from lsp_server.repository.repository import (  # noqa: PLC0415 - no start waits for it
                Repository,
            )

            self._repository = Repository(self._on_progress)
        if self._repository is not None:
            self._repository.enter(self._folders, settings)

    def changed(self, changed: Iterable[str]) -> None:
        """Note that files of these URIs changed, appeared or disappeared."""
        if self._repository is not None:
            self._repository.changed(tuple(changed))

    def look(self) -> None:
        """Look for changed files at a sign of the user, if the client watches none."""
        if self._repository is not None and not self.is_watched:
            self._repository.look()

    def edited(self, uri: str, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Note the edits of a document, which are already in its text."""
        snapshot = self._documents.snapshot(uri)
        if self._repository is None or not isinstance(snapshot, Snapshot):
            return
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                num_lines = 1 + len(LINE_END.findall(change.text))
                self._edits.note(snapshot, change.range.start.line, num_lines)

    async def shown(self, anchor: Anchor, *, is_quick: bool) -> tuple[Snippet, ...]:
        """Return snippets of the files for a place, if they may be sent.

        `is_quick`: the host reads a prompt in a moment.
        """
        if self._repository is None:
            return ()
        self.look()
        question = self._question(anchor, is_quick=is_quick)
        return () if question is None else await self._repository.shown(question)

    @property
    def trouble(self) -> str:
        """Why the index gives no answers at the moment; "" if it does."""
        return self._repository.trouble if self._repository is not None else ""

    @property
    def problem(self) -> str:
        """Why the files are not indexed; "" if they are, or are not meant to be."""
        return self._repository.problem if self._repository is not None else ""

    def close(self) -> None:
        """Close the index when the editor leaves."""
        if self._repository is not None:
            self._repository.close()

    def _question(self, anchor: Anchor, *, is_quick: bool) -> "Question | None":
        from lsp_server.repository.cursor_view import (  # noqa: PLC0415 - as the index
            Question,
        )

        document, position = anchor.document, anchor.position
        notebook = self._documents.notebook_of(document.uri)
        path = file_path(notebook or document.uri)
        if path is None:
            return None
        above, below = (
            lines_of(self._documents, cells) for cells in (anchor.cells.above, anchor.cells.below)
        )
        lines = anchor.snapshot.lines
        ending = ending_of(document.language_id) if notebook else ""  # that of the cell's code
        opened = (file_path(one.uri) for one in self._documents.snapshots())
        return Question(
            uri=notebook or document.uri,
            path=path.with_name(path.name + ending) if ending else path,
            lines=(*above, *lines, *below) if above or below else lines,
            row=len(above) + position.line,
            character=position.character,
            opened=frozenset(filter(None, opened)),
            is_quick=is_quick,
            edits=self._edits.far_from(document.uri, position.line),
        )
