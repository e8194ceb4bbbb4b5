"""The current state of one editor's work; only its session changes it."""

from dataclasses import dataclass

from lsp_server.documents.anchor import Anchor
from lsp_server.documents.cells_around import ALONE, cells_around
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.privacy.permissions import Permissions
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

_LF_CLIENTS = ("neovim", "nvim")  # they write the document's line ends themselves


@dataclass(slots=True)
class Workspace:
    """Open documents, settings, and permissions to complete and send the documents."""

    documents: Documents
    settings: Settings
    permissions: Permissions
    root: str = ""  # the URI of the first folder
    client_name: str = ""

    async def look(self) -> None:
        """Judge the open documents, off the event loop if that may take long."""
        await self.permissions.look(self.documents.snapshots())

    def left_alone(self, uri: str) -> Reason | None:
        """Return why a document gets no automatic suggestions; None if it does."""
        snapshot = self.documents.snapshot(uri)
        if isinstance(snapshot, Reason):
            return snapshot
        return self.permissions.refusal(snapshot) or self.silence(snapshot)

    def silence(self, snapshot: Snapshot) -> Reason | None:
        """Return why a document is completed only on request; a new cell is no empty file."""
        reason = self.permissions.silence(snapshot)
        if reason is not Reason.EMPTY_FILE:
            return reason
        return reason if cells_around(self.documents, snapshot) == ALONE else None

    def is_outdated(self, anchor: Anchor) -> bool:
        """Whether the document has changed since `anchor`."""
        then, now = anchor.document, self.documents.snapshot(anchor.document.uri)
        if isinstance(now, Reason):
            return True
        return (now.opening, now.version) != (then.opening, then.version)

    def line_end(self, snapshot: Snapshot) -> str:
        """Return the line end of text that the client inserts into a document."""
        wanted = self.settings.line_ends
        if wanted == "auto":
            is_lf = any(name in self.client_name.lower() for name in _LF_CLIENTS)
            wanted = "lf" if is_lf else "document"
        return "\n" if wanted == "lf" else snapshot.line_end
