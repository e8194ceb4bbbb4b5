"""The places of cursors in all open documents, whose trees follow their edits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.host.protocol import LineSplice, Position
from lsp_server.documents.document import Snapshot
from lsp_server.prompt.parsed_line import ParsedLine
from lsp_server.prompt.place import Place
from lsp_server.prompt.syntax import DocumentSyntax


@dataclass(slots=True)
class _Followed:
    """A document's tree and the version that it was read at."""

    syntax: DocumentSyntax
    opening: int
    version: int


class Places:
    """One tree for each document; `splices_since` gives its changes since a version."""

    def __init__(self, splices_since: Callable[[str, int], tuple[LineSplice, ...] | None]) -> None:
        self._splices_since = splices_since
        self._followed: dict[str, _Followed] = {}

    def place(self, snapshot: Snapshot, position: Position) -> Place:
        """The place of a position in the document's current text."""
        with self._following(snapshot) as (syntax, splices):
            return syntax.place(snapshot.lines, position, splices)

    def parsed_line(self, snapshot: Snapshot, row: int) -> ParsedLine | None:
        """A line of the document's current text within its tree, if there is one in time."""
        with self._following(snapshot) as (syntax, splices):
            return syntax.parsed_line(snapshot.lines, row, splices)

    def catch_up(self, uri: str) -> bool:
        """Parse some of what was left unparsed while the user typed; whether there is more."""
        followed = self._followed.get(uri)
        return followed is not None and followed.syntax.catch_up()

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._followed.pop(uri, None)

    @contextmanager
    def _following(
        self, snapshot: Snapshot
    ) -> Iterator[tuple[DocumentSyntax, tuple[LineSplice, ...] | None]]:
        """The document's syntax, and the changes from its text to the snapshot's."""
        # Out of the table meanwhile: a tree that was half edited must not be edited again.
        followed = self._followed.pop(snapshot.uri, None)
        splices = None
        if followed is not None and followed.opening == snapshot.opening:
            splices = self._splices_since(snapshot.uri, followed.version)
        else:
            followed = _Followed(DocumentSyntax(snapshot.language_id), 0, 0)
        yield followed.syntax, splices
        followed.opening, followed.version = snapshot.opening, snapshot.version
        self._followed[snapshot.uri] = followed
