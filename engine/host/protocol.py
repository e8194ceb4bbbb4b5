"""The host's native protocol: the types that `foregram lsp` and `foregram serve` exchange as JSON.

A document is its lines: text without line ends, which the wire does not know (a client keeps the
line ends of its file). Positions count code points. Buffers travel as versioned splices of whole
lines; where the host does not hold the base version it answers 409 and names the buffer, and the
client sends the whole of it.

    POST /v1/complete        CompleteRequest -> lines of Chunk, then one Done or Failed (NDJSON)
    POST /v1/buffers         SyncRequest     -> 204, 409
    POST /v1/buffers/close   CloseRequest    -> 204
    POST /v1/feedback        Feedback        -> 204
    GET  /v1/status          Status; `?client=` names the client that asks
    POST /v1/stop            -> 202; the host drains and exits; 403 but on a Unix socket
    GET  /health             200 or 503, `{"status": ...}`
    GET  /metrics            Prometheus text

Every failure is a `Problem` with a fitting HTTP status. All but /health ask for the token and the
header `foregram-protocol`, /metrics for the token alone; bodies are of the type application/json
and need a Content-Length, which a proxy between has to send, too.
Requests that a browser sends for a web page are refused. Clients, buffers, ids and figures are those
of the principal that the token names; beyond its quota a request is answered 429, with the seconds
to wait in `Retry-After`.
"""

from typing import Annotated, Literal, Self

from msgspec import Meta

from engine.config import Layout, Message, Sampling, StopRules
from engine.request import Chunk, Cost, FinishReason, Snippet

PROTOCOL_VERSION = 2
PROTOCOL_HEADER = "foregram-protocol"  # another number, or none, is answered with 426
# Where several hosts serve under one address: what has one value of the first goes to one of them;
# each answer names its host in the second. They share no buffers.
SESSION_HEADER = "x-session-id"
REPLICA_HEADER = "foregram-replica"
MAX_BODY_BYTES = 32 * 1024 * 1024

# Numbers beyond int64 would fail later: in a float, a printed number, an array.
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NotNegative = Annotated[int, Meta(ge=0, le=2**53 - 1)]


# The codes of a 409: the documents that it names are held otherwise, or none of the client's is.
UNKNOWN_VERSION, UNKNOWN_CLIENT = "unknown_version", "unknown_client"


class Problem(Message, frozen=True, omit_defaults=True):
    """A refusal: a code for programs and a sentence for people."""

    code: str
    message: str
    uris: tuple[str, ...] = ()  # 409: not held at the version that the request builds on


class Position(Message, frozen=True):
    """Line and code point within it, from 0."""

    line: NotNegative
    character: NotNegative


class LineSplice(Message, frozen=True):
    """Lines `start` to `end` (excluded) become `lines`."""

    start: Integer
    end: Integer
    lines: tuple[str, ...]


class BufferSync(Message, frozen=True):
    """A buffer at `version`: its whole `lines`, or `splices` in their order upon `base_version`."""

    uri: str
    path: str  # for people and prompts, relative to the workspace where that is possible
    language: str
    version: Integer
    lines: tuple[str, ...] | None = None
    base_version: Integer | None = None
    splices: tuple[LineSplice, ...] = ()
    notebook: str = ""  # whose cell it is: its cells are one text, and no open files of each other

    def __post_init__(self) -> None:
        if (self.lines is None) == (self.base_version is None) or (self.lines and self.splices):
            raise ValueError("a buffer comes with its lines, or with splices upon a base version")


class SyncRequest(Message, frozen=True):
    """Buffers of one client to be held from now on."""

    client: str  # a random name that one LSP server keeps
    workspace: str
    buffers: tuple[BufferSync, ...]


class CloseRequest(Message, frozen=True):
    """Buffers to forget; None is all of them: the client leaves."""

    client: str
    uris: tuple[str, ...] | None = None


FeedbackKind = Literal["shown", "accepted", "partly_accepted", "rejected"]

MAX_TOKENS = 1024  # of a completion: nobody reads a longer one, and it keeps others waiting
MAX_SNIPPETS = 64  # of the repository in a request
MAX_FEEDBACK = 64  # of completions that a request comes after
MAX_CELLS = 2_000  # of a notebook on each side
MAX_CELL_CHARS = 2_000_000  # of all of them: more than a prompt or the pool can hold


class Feedback(Message, frozen=True):
    """What became of a completion.

    `accepted_len` counts the code points of its text that were taken by now; None is all of them.
    """

    client: str
    completion_id: str
    kind: FeedbackKind
    accepted_len: NotNegative | None = None


class Cell(Message, frozen=True):
    """A buffer that stands above or below the one completed; it has to be held.

    `sign` is that of a comment, which each line gets: the cell is prose. Code has none.
    """

    uri: str
    sign: Annotated[str, Meta(max_length=16)] = ""


class CompleteRequest(Message, frozen=True):
    """Continue a buffer at a position, as it is at `version` with `overlay` upon it.

    `sync` is applied first. The overlay serves this request alone: what the text would be if the
    item selected in a menu, or the completion just shown, were accepted. A cell of a notebook is
    continued as a part of one text, with the cells `above` and `below` in their order.
    """

    client: str
    workspace: str
    uri: str
    version: Integer
    position: Position  # in the text with the overlay
    sync: tuple[BufferSync, ...] = ()
    overlay: tuple[LineSplice, ...] = ()
    above: Annotated[tuple[Cell, ...], Meta(max_length=MAX_CELLS)] = ()
    below: Annotated[tuple[Cell, ...], Meta(max_length=MAX_CELLS)] = ()
    layout: Layout = "line"
    lookahead: Annotated[str, Meta(max_length=64)] = "auto"
    sampling: Sampling = Sampling()
    stop: StopRules = StopRules()
    # What the client's index shows of files that are not open, the best first.
    repository: Annotated[tuple[Snippet, ...], Meta(max_length=MAX_SNIPPETS)] = ()
    # What became of earlier completions; what the host does not know by now is passed over.
    feedback: Annotated[tuple[Feedback, ...], Meta(max_length=MAX_FEEDBACK)] = ()
    # Nobody waits for a prefetch: any other request goes first, and ends this one.
    is_prefetch: bool = False

    def __post_init__(self) -> None:
        uris = [self.uri, *(one.uri for one in (*self.above, *self.below))]
        if len(set(uris)) < len(uris):
            raise ValueError("each cell of a notebook is named once, and not the one completed")


class Done(Message, frozen=True, tag="done"):
    """The last line of a completion: its whole text and what it cost."""

    id: str  # for feedback
    text: str
    finish_reason: FinishReason
    cost: Cost


class Failed(Message, frozen=True, tag="failed", omit_defaults=True):
    """The last line of a completion that failed after its stream had begun."""

    code: str
    message: str
    retry_after_s: float | None = None  # when to ask again, where that is known

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """As a request would be refused."""
        return cls(problem.code, problem.message)


CompleteEvent = Chunk | Done | Failed


HostState = Literal["loading", "ready", "failed", "stopping"]


class LoadProgress(Message, frozen=True):
    """How far the model is loaded."""

    task: str
    done: int
    total: int


class Status(Message, frozen=True):
    """What a host is doing."""

    protocol: int
    version: str
    state: HostState
    pid: int
    uptime_s: float
    progress: LoadProgress | None = None
    problem: Problem | None = None
    requested_model: str = ""  # the name under which the host was told to load it
    model: str = ""
    device: str = ""
    dtype: str = ""
    place: str = ""  # a sentence: the device, what runs there and why, and what was found
    num_running: int = 0
    num_waiting: int = 0
    num_clients: int = 0
    num_other_clients: int = 0  # than the one that `?client=` names
    num_buffers: int = 0
    pool_tokens: int = 0
    kv_bytes: int = 0
    memory_mb: float = 0.0
    last_prompt: Cost | None = None  # it names no file, as it may be another client's
    lost: tuple[str, ...] = ()  # phrases: what there is not, as another program generates
    idle_s: float = 0.0  # since anybody used the host; 0 while it is busy
