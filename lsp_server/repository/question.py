"""What an index is asked about: a cursor, in the text as it stands in the editor."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.host.protocol import RepositorySnippet
from lsp_server.repository.cursor_view import CursorView

OnProgress = Callable[[int, int, str], None]  # files read, of how many; what to say once all are
# Of what was found, what may go out by now.
Sendable = Callable[[], Awaitable[tuple[RepositorySnippet, ...]]]


class Question(NamedTuple):
    """A cursor in a document: its file, the text, the files that are open, what was edited last."""

    uri: str
    path: Path
    lines: Sequence[str]
    row: int
    character: int
    opened: frozenset[Path]
    is_quick: bool  # a prompt is read so quickly that another choice is no matter
    edits: tuple[str, ...] = ()  # lines, in any document

    def view(self, path: str) -> CursorView:
        """The text around the cursor, in the file that `path` names within its folder."""
        line = self.lines[self.row]
        before = [*self.lines[: self.row], line[: self.character]]
        return CursorView(path, before, [line[self.character :], *self.lines[self.row + 1 :]])
