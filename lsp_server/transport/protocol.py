"""LSP where pygls falls short: malformed requests get a response, and older editors are served."""

import logging
import math
import re
from collections.abc import Callable, Generator
from functools import cache, partial
from typing import Any

import cattrs
from lsprotocol import types
from pygls import protocol
from pygls.exceptions import (
    FeatureRequestError,
    JsonRpcException,
    JsonRpcInvalidRequest,
    PyglsError,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import lsp_method
from pygls.protocol.json_rpc import (
    JsonRPCNotification,
    RPCMessage,
    RPCRequest,
)

from lsp_server.documents.documents import Documents

_LOG = logging.getLogger(__name__)
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(notebook="*")]
)
_CODES = types.ErrorCodes
_EDITS = (types.TEXT_DOCUMENT_DID_CHANGE, types.NOTEBOOK_DOCUMENT_DID_CHANGE)
_MAX_SENTENCE = 300  # characters of an error's first line, enough for a sentence
_MAX_FAULTS = 3  # most faults that one message lists
_MOST = 2**31 - 1  # the largest integer in LSP
_NUMBERED = (
    types.NotebookDocument,
    types.Position,
    types.TextDocumentItem,
    types.VersionedNotebookDocumentIdentifier,
    types.VersionedTextDocumentIdentifier,
)
_PART, _WHOLE = types.TextDocumentContentChangePartial, types.TextDocumentContentChangeWholeDocument

_Handler = Generator[Any, Any, Any]  # a built-in handler, which pygls runs step by step


class DocumentServer(LanguageServer):
    """Keeps texts in `documents`. pygls would copy a text at every key, and split it unlike LSP."""

    protocol: "LanguageServerProtocol"

    def __init__(self, name: str, version: str, documents: Documents) -> None:
        self.documents = documents
        super().__init__(
            name,
            version,
            notebook_document_sync=_NOTEBOOKS,
            protocol_cls=LanguageServerProtocol,
            converter_factory=tolerant_converter,
        )

    def before_initialize(self, params: types.InitializeParams) -> None:
        """Called before the server sends its capabilities."""

    async def leave(self) -> None:
        """Called when the connection ends."""

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """Log an error outside a request to the client; a popup would steal the focus."""
        if source is not FeatureRequestError:
            params = types.LogMessageParams(types.MessageType.Error, _one_sentence(str(error)))
            self.window_log_message(params)


class LanguageServerProtocol(protocol.LanguageServerProtocol):
    """Reads editors' messages and answers each request once."""

    _server: DocumentServer

    def __init__(self, server: DocumentServer, converter: cattrs.Converter) -> None:
        super().__init__(server, converter)
        documents = server.documents
        keeping: dict[str, Callable[[Any], object]] = {
            types.TEXT_DOCUMENT_DID_OPEN: lambda params: documents.open(params.text_document),
            types.TEXT_DOCUMENT_DID_CHANGE: self._change,
            types.TEXT_DOCUMENT_DID_CLOSE: lambda params: documents.close(params.text_document.uri),
            types.NOTEBOOK_DOCUMENT_DID_OPEN: documents.open_notebook,
            types.NOTEBOOK_DOCUMENT_DID_CHANGE: documents.change_notebook,
            types.NOTEBOOK_DOCUMENT_DID_CLOSE: documents.close_notebook,
        }
        for method, keep in keeping.items():
            self.fm.add_builtin_feature(method, partial(self._kept, method, keep))

    # pygls caches the results of these two, which would keep each connection alive.
    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """Return the type of a message's params."""
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """Return the type of a request's result."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    def structure_message(self, data: dict[str, Any]) -> RPCMessage:
        """Read a message; a command without an id, as copilot.el sends it, is a notification."""
        if "id" not in data and data.get("method") == types.WORKSPACE_EXECUTE_COMMAND:
            read = super().structure_message({**data, "id": 0})
            return JsonRPCNotification(read.method, read.jsonrpc, read.params)
        message: RPCMessage = super().structure_message(data)
        return message

    def handle_data(self, data: object) -> None:
        """Handle a message, or reject one that is malformed or not allowed now."""
        if not isinstance(data, dict):
            raise JsonRpcInvalidRequest("a message is a JSON object")
        message_id, method = data.get("id"), data.get("method")
        if data.get("jsonrpc") == self.VERSION and isinstance(method, str | None):
            try:
                message = self.structure_message(_completed(data))
            except JsonRpcException as error:
                if "method" not in data:
                    raise
                self._refuse_unreadable(data, str(method), error)
            else:
                if self._is_allowed(message):
                    self.handle_message(message)
        elif isinstance(message_id, int | str) and method is not None:
            problem = f"a request says jsonrpc: {self.VERSION}, and its method by a string"
            self._refuse(message_id, _CODES.InvalidRequest, problem)
        else:
            raise JsonRpcInvalidRequest(f"a message says jsonrpc: {self.VERSION}")

    def _is_allowed(self, message: RPCMessage) -> bool:
        """Whether a message is allowed now; a request that is not gets an error here."""
        if self._workspace is not None and not self._shutdown:
            return True  # the usual case; an `isinstance` check of a message takes 0.05 ms
        method = getattr(message, "method", "")
        if not isinstance(message, RPCRequest):
            return self._workspace is not None or method in ("", types.EXIT)
        if self._shutdown:
            self._refuse(message.id, _CODES.InvalidRequest, "the server is shutting down")
        elif method != types.INITIALIZE:
            problem = "the client must initialize first"
            self._refuse(message.id, _CODES.ServerNotInitialized, problem)
        return not self._shutdown and method == types.INITIALIZE

    def _refuse_unreadable(
        self, data: dict[str, Any], method: str, error: JsonRpcException
    ) -> None:
        problem = _one_sentence(f"{method}: {_faults(error)}")
        if (message_id := data.get("id")) is not None:
            self._refuse(message_id, _CODES.InvalidParams, problem)
            return
        _LOG.warning("ignored: %s", problem)
        if method in _EDITS:
            self._server.documents.lose_step(_uri(data.get("params")))

    def _refuse(self, message_id: int | str, code: types.ErrorCodes, reason: str) -> None:
        self._send_response(message_id, error=types.ResponseError(code, reason))

    def _send_response(
        self,
        msg_id: int | str,
        result: object = None,
        error: types.ResponseError | None = None,
    ) -> None:
        if error is not None:
            # With an internal error, pygls sends a stack trace as data.
            data = None if error.code == _CODES.InternalError else error.data
            error = types.ResponseError(error.code, _one_sentence(error.message), data)
        super()._send_response(msg_id, result, error)

    def _execute_handler(
        self,
        msg_id: int | str,
        handler: Callable[..., Any],
        callback: Callable[[Any], Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Run a handler; when its request is cancelled, so is a command, which pygls lets go on."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        request = callback.keywords.get("result_future") if isinstance(callback, partial) else None
        if request is not None and (work := self._request_futures.pop(msg_id, None)) is not None:
            request.add_done_callback(lambda _: work.cancel())
            # pygls does not look at an end that comes as the request is cancelled.
            work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> _Handler:
        """Choose UTF-16 positions and initialize."""
        if (general := params.capabilities.general) is not None:
            # All clients know UTF-16; pygls would take the first encoding that this one offers.
            general.position_encodings = [types.PositionEncodingKind.Utf16]
        self._server.before_initialize(params)
        return (yield from super().lsp_initialize(params))

    def _change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        refusal = self._server.documents.change(
            document.uri, document.version, params.content_changes
        )
        if refusal is not None:
            _LOG.warning("a change was lost: %s", refusal.sentence)

    def _kept(self, method: str, keep: Callable[[Any], object], params: object) -> _Handler:
        """Update our documents, then run the server's own handler, if any."""
        keep(params)
        if (handler := self.fm.features.get(method)) is not None:
            yield handler, (params,), None


@cache  # otherwise each connection would leave its compiled hooks in memory
def tolerant_converter() -> cattrs.Converter:
    """Return pygls' converter, except that it clamps numbers, and our own methods get a dict."""
    converter: cattrs.Converter = protocol.default_converter()  # type: ignore[no-untyped-call]
    for message in (protocol.JsonRPCRequestMessage, JsonRPCNotification):
        converter.register_structure_hook(message, lambda value, cls: cls(**value))
    for kind in _NUMBERED:
        plain = converter.get_structure_hook(kind)
        converter.register_structure_hook(
            kind, lambda value, cls, plain=plain: plain(_clamped(value), cls)
        )

    def change(value: Any, _: object) -> Any:  # noqa: ANN401 - whatever a client sends
        kind = _WHOLE if _clamped(value).get("range") is None else _PART
        kept = {key: value[key] for key in ("range", "text") if key in value}
        return converter.structure(kept, kind)

    converter.register_structure_hook(_PART | _WHOLE, change)
    return converter


def _clamped(value: Any) -> Any:  # noqa: ANN401 - whatever a client sends
    """Clamp numbers to LSP's range. Raises TypeError if the text or URI is no string."""
    if not isinstance(value, dict) or not all(
        isinstance(value.get(key, ""), str) for key in ("text", "uri")
    ):
        raise TypeError("an object whose text and address are strings")
    numbers = {
        key: int(min(max(one, 0), _MOST))
        for key in ("line", "character", "version")
        if isinstance(one := value.get(key), int | float) and -math.inf <= one <= math.inf
    }
    return {**value, "version": 0, **numbers}


def _completed(data: dict[str, Any]) -> dict[str, Any]:
    """Add what some clients omit: params, and before LSP 3.18 the context. VS Code's 0 is Invoked."""
    if "method" not in data:
        return data
    params = {} if data.get("params") is None else data["params"]
    context = (params.get("context") or {}) if isinstance(params, dict) else None
    if data["method"] == types.TEXT_DOCUMENT_INLINE_COMPLETION and isinstance(context, dict):
        kind = context.get("triggerKind", types.InlineCompletionTriggerKind.Automatic)
        kind = types.InlineCompletionTriggerKind.Invoked if kind == 0 else kind
        params = {**params, "context": {**context, "triggerKind": kind}}
    return {**data, "params": params}


def _uri(params: object) -> str | None:
    if not isinstance(params, dict):
        return None
    document = params.get("textDocument") or params.get("notebookDocument")
    uri = document.get("uri") if isinstance(document, dict) else None
    return uri if isinstance(uri, str) else None


def _faults(error: JsonRpcException) -> str:
    """Describe each fault and its place: `position.line: required field missing`."""
    cause = error.__cause__
    if not isinstance(cause, cattrs.BaseValidationError):
        return str(cause)
    faults = [fault.partition(" @ $.") for fault in cattrs.transform_error(cause)]
    return "; ".join(f"{_camel(path)}: {what}" for what, _, path in faults[:_MAX_FAULTS])


def _camel(path: str) -> str:
    return re.sub("_([a-z])", lambda match: match[1].upper(), path)


def _one_sentence(message: str) -> str:
    """Return the first line, shortened; a client needs no stack trace."""
    first = (message.strip().splitlines() or ["unknown failure"])[0]
    return first if len(first) <= _MAX_SENTENCE else f"{first[:_MAX_SENTENCE]}..."
