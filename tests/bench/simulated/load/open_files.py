"""The files that a simulated person has open, and the cursor in one of them."""

from dataclasses import dataclass, field

from lsprotocol import types

from lsp_server.documents.documents import Documents
from tests.bench.simulated.traces import Trace
from tests.support.editor import behind

_LANGUAGE = "python"


@dataclass(slots=True)
class OpenFiles:
    """Documents below the URI `root`."""

    root: str
    documents: Documents = field(default_factory=Documents)
    _uri: str = ""
    _before: str = ""  # the text up to the cursor
    _version: int = 1

    def turn_to(self, trace: Trace) -> list[str]:
        """Open a trace's files, the cursor before its approach; return the URIs closed for it."""
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
        self._before, self._version = trace.before, 1
        return closed

    def type(self, text: str) -> None:
        self._version += 1
        cursor = behind(self._before)
        change = types.TextDocumentContentChangePartial(types.Range(cursor, cursor), text)
        self.documents.change(self._uri, self._version, [change])
        self._before += text

    @property
    def question(self) -> types.InlineCompletionParams:
        document = types.TextDocumentIdentifier(self._uri)
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        return types.InlineCompletionParams(context, document, behind(self._before))
