"""The files that a simulated person has open, and the cursor in one of them."""

from dataclasses import dataclass, field

from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from tests.bench.simulated.traces import Trace

_LANGUAGE = "python"


@dataclass(slots=True)
class OpenFiles:
    """Documents below the URI `root`; rows and columns count from 0, columns in code points."""

    root: str
    documents: Documents = field(default_factory=Documents)
    _uri: str = ""
    _row: int = 0
    _column: int = 0
    _version: int = 1

    def path_of(self, uri: str) -> str:
        """A document's path in the workspace."""
        return uri.removeprefix(self.root)

    def turn_to(self, trace: Trace) -> list[str]:
        """Open a trace's files, the cursor before its approach; the URIs of those closed for it."""
        self._uri = self.root + trace.path
        texts = {self.root + one.path: one.text for one in reversed(trace.open_buffers)}
        texts.pop(self._uri, None)
        held = {one.uri for one in self.documents.snapshots()}
        closed = [uri for uri in held if uri not in texts]
        for uri in closed:
            self.documents.close(uri)
        texts = {uri: text for uri, text in texts.items() if uri not in held}
        for uri, text in {**texts, self._uri: trace.before + trace.suffix}.items():
            self.documents.open(types.TextDocumentItem(uri, _LANGUAGE, 1, text))
        *above, last = trace.before.split("\n")
        self._row, self._column, self._version = len(above), len(last), 1
        return closed

    def type(self, text: str) -> None:
        """Insert text at the cursor."""
        self._version += 1
        place = self.anchor.snapshot.client_position(Position(self._row, self._column))
        change = types.TextDocumentContentChangePartial(types.Range(place, place), text)
        self.documents.change(self._uri, self._version, [change])
        *above, last = text.split("\n")
        self._row += len(above)
        self._column = len(last) + (0 if above else self._column)

    @property
    def anchor(self) -> Anchor:
        """The cursor in the text as it is now."""
        snapshot = self.documents.snapshot(self._uri)
        assert isinstance(snapshot, Snapshot)
        return Anchor.of(snapshot, Position(self._row, self._column))
