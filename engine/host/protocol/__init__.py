"""The host's native protocol: the types that `foregram lsp` and `foregram serve` exchange as JSON.

A document is its lines: text without line ends, which the wire does not know (a client keeps the
line ends of its file). Positions count code points. Buffers travel as versioned splices of whole
lines; where the host does not hold the base version it answers 409 and names the buffer, and the
client sends the whole of it.

    POST /v1/complete        CompleteRequest -> lines of Chunk, then one Done or Failed (NDJSON)
    POST /v1/buffers         SyncRequest     -> 204, 409
    POST /v1/buffers/close   CloseRequest    -> 204
    POST /v1/feedback        Feedback        -> 204
    GET  /v1/status          Status; `?client=` names who asks
    POST /v1/stop            -> 202; the host drains and exits; 403 but on a Unix socket
    GET  /v1/openapi.json    these routes and types, for programs
    GET  /health             200 or 503, `{"status": ...}`
    GET  /metrics            Prometheus text

Every failure is a `Problem` with a fitting HTTP status. All but /health ask for the token and the
header `foregram-protocol`, /metrics for the token alone; bodies are of the type application/json.
Requests that a browser sends for a web page are refused. Clients, buffers, ids and figures are those
of the principal that the token names; one who would have more than its quota is answered 429, with
the seconds to wait in `Retry-After`.
"""

from engine.host.protocol.completion import (
    MAX_CELL_CHARS,
    MAX_CELLS,
    MAX_FEEDBACK,
    MAX_SNIPPET_CHARS,
    MAX_SNIPPETS,
    MAX_TOKENS,
    Bounds,
    Cell,
    Chunk,
    CompleteEvent,
    CompleteRequest,
    Done,
    Failed,
    Feedback,
    FeedbackKind,
    RepositorySnippet,
    Sampled,
    Timings,
    TokenText,
)
from engine.host.protocol.message import (
    MAX_BODY_BYTES,
    PROTOCOL_HEADER,
    PROTOCOL_VERSION,
    REPLICA_HEADER,
    SESSION_HEADER,
    UNKNOWN_CLIENT,
    UNKNOWN_VERSION,
    BufferSync,
    CloseRequest,
    Integer,
    LineSplice,
    Position,
    Problem,
    SyncRequest,
)
from engine.host.protocol.status import HostState, LoadProgress, PromptUse, Status

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_CELLS",
    "MAX_CELL_CHARS",
    "MAX_FEEDBACK",
    "MAX_SNIPPETS",
    "MAX_SNIPPET_CHARS",
    "MAX_TOKENS",
    "PROTOCOL_HEADER",
    "PROTOCOL_VERSION",
    "REPLICA_HEADER",
    "SESSION_HEADER",
    "UNKNOWN_CLIENT",
    "UNKNOWN_VERSION",
    "Bounds",
    "BufferSync",
    "Cell",
    "Chunk",
    "CloseRequest",
    "CompleteEvent",
    "CompleteRequest",
    "Done",
    "Failed",
    "Feedback",
    "FeedbackKind",
    "HostState",
    "Integer",
    "LineSplice",
    "LoadProgress",
    "Position",
    "Problem",
    "PromptUse",
    "RepositorySnippet",
    "Sampled",
    "Status",
    "SyncRequest",
    "Timings",
    "TokenText",
]
