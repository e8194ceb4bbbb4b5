"""The host's native protocol: the types that `foregram lsp` and `foregram serve` exchange as JSON.

A document is a list of lines without line ends; the client keeps the line ends of its file.
Positions count code points. Buffers travel as versioned splices of whole lines. If the host lacks
the base version, it answers 409 with the buffer's URI, and the client sends the whole buffer.

    POST /v1/complete        CompleteRequest -> lines of Chunk, then one Done or Failed (NDJSON)
    POST /v1/buffers         SyncRequest     -> 204, 409
    POST /v1/buffers/close   CloseRequest    -> 204
    POST /v1/feedback        Feedback        -> 204
    GET  /v1/status          Status; `?client=` names the client that asks
    POST /v1/stop            -> 202; the host drains and exits. 403 unless on a Unix socket
    GET  /health             200 or 503, `{"status": ...}`
    GET  /metrics            Prometheus text

Every failure is a `Problem` with an HTTP status. /health needs no token, /metrics the token, and
all others also the header `foregram-protocol`. Bodies are application/json with a Content-Length.
Requests from web pages are refused. Clients, buffers, ids and figures belong to the token's
principal. A request over its quota is answered 429, with `Retry-After` in seconds.
"""

from typing import Annotated, Literal, Self

from msgspec import Meta

from engine.config import Layout, Message, Sampling, StopRules
from engine.request import Chunk, Cost, Done, EditTask, Snippet

PROTOCOL_VERSION = 4  # hosts and language servers must have the same one
PROTOCOL_HEADER = "foregram-protocol"  # a wrong or missing number is answered with 426
# Hosts behind one address share no buffers: a session's requests reach one, which answers name.
SESSION_HEADER = "x-session-id"
REPLICA_HEADER = "foregram-replica"
MAX_BODY_BYTES = 32 * 1024 * 1024  # of a request; a proxy in front must allow as many

Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # larger ones would fail in an array
NotNegative = Annotated[int, Meta(ge=0, le=2**53 - 1)]
UNKNOWN_VERSION, UNKNOWN_CLIENT = "unknown_version", "unknown_client"  # codes of a 409


class Problem(Message, frozen=True, omit_defaults=True):
    """A refusal: a code for programs and a sentence for people."""

    code: str
    message: str
    uris: tuple[str, ...] = ()  # with a 409: buffers not held at the request's base version


class Position(Message, frozen=True):
    """A line and a code point in it, both from 0."""

    line: NotNegative
    character: NotNegative


class LineSplice(Message, frozen=True):
    """Replaces lines `start` up to, not including, `end` by `lines`."""

    start: Integer
    end: Integer
    lines: tuple[str, ...]


class BufferSync(Message, frozen=True):
    """A buffer at `version`: all its `lines`, or `splices` applied in order to `base_version`."""

    uri: str
    path: str  # for people and prompts; relative to the workspace if possible
    language: str
    version: Integer
    lines: tuple[str, ...] | None = None
    base_version: Integer | None = None
    splices: tuple[LineSplice, ...] = ()
    notebook: str = ""  # the notebook of a cell; its cells are one text, not separate open files

    def __post_init__(self) -> None:
        if (self.lines is None) == (self.base_version is None) or (self.lines and self.splices):
            raise ValueError("a buffer comes with its lines, or with splices upon a base version")


class SyncRequest(Message, frozen=True):
    """Buffers of one client for the host to hold."""

    client: str  # a random name, fixed for one LSP server
    workspace: str
    buffers: tuple[BufferSync, ...]


class CloseRequest(Message, frozen=True):
    """Buffers to forget; None forgets all, as the client leaves."""

    client: str
    uris: tuple[str, ...] | None = None


FeedbackKind = Literal["shown", "accepted", "partly_accepted", "rejected"]

MAX_TOKENS = 1024  # tokens of a completion: nobody reads more, and others wait meanwhile
MAX_ANSWER_TOKENS = 4096  # tokens of an edit or of an answer to messages: 400 lines of code
MAX_SNIPPETS = 64  # snippets in a request, from files that are not open
MAX_FEEDBACK = 64  # reports on earlier completions in a request; unknown ones are skipped
MAX_CELLS = 2_000  # notebook cells on each side of the one completed
MAX_CELL_CHARS = 2_000_000  # characters of all cells: more than a prompt or the pool can hold


class Feedback(Message, frozen=True):
    """The user's reaction to a completion."""

    client: str
    completion_id: str
    kind: FeedbackKind
    accepted_len: NotNegative | None = None  # code points accepted so far; None means all


class Cell(Message, frozen=True):
    """A buffer above or below the one completed, in one text with it; the host must hold it."""

    uri: str
    sign: Annotated[str, Meta(max_length=16)] = ""  # before each line of prose; empty for code


class CompleteRequest(Message, frozen=True):
    """Asks to continue a buffer at a position, at `version` with `overlay` applied."""

    client: str
    workspace: str
    uri: str
    version: Integer
    position: Position  # in the text after applying `overlay`
    sync: tuple[BufferSync, ...] = ()  # applied first
    overlay: tuple[LineSplice, ...] = ()  # a menu item or completion, as if accepted; not kept
    above: Annotated[tuple[Cell, ...], Meta(max_length=MAX_CELLS)] = ()
    below: Annotated[tuple[Cell, ...], Meta(max_length=MAX_CELLS)] = ()
    layout: Layout = "line"
    lookahead: Annotated[str, Meta(max_length=64)] = "auto"
    sampling: Sampling = Sampling()
    stop: StopRules = StopRules()
    repository: Annotated[tuple[Snippet, ...], Meta(max_length=MAX_SNIPPETS)] = ()  # best first
    feedback: Annotated[tuple[Feedback, ...], Meta(max_length=MAX_FEEDBACK)] = ()
    is_prefetch: bool = False  # nobody waits: any other request goes first, and may end it
    edit: EditTask | None = None  # a change to make instead of a text to insert

    def __post_init__(self) -> None:
        uris = [self.uri, *(one.uri for one in (*self.above, *self.below))]
        if len(set(uris)) < len(uris):
            raise ValueError("each cell of a notebook is named once, and not the one completed")


class Failed(Message, frozen=True, tag="failed", omit_defaults=True):
    """The last line of a completion that failed after its stream had begun."""

    code: str
    message: str
    retry_after_s: float | None = None  # seconds before a retry, if known

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the failure for a problem."""
        return cls(problem.code, problem.message)


CompleteEvent = Chunk | Done | Failed


HostState = Literal["loading", "ready", "failed", "stopping"]


class LoadProgress(Message, frozen=True):
    """Progress of loading the model."""

    task: str
    done: int
    total: int

    @property
    def percentage(self) -> int | None:
        """How much of the task is done, if known."""
        return min(100, 100 * self.done // self.total) if self.total else None


class Status(Message, frozen=True):
    """The state and figures of a host."""

    protocol: int
    version: str
    state: HostState
    pid: int
    uptime_s: float
    progress: LoadProgress | None = None
    problem: Problem | None = None
    requested_model: str = ""  # the model's name as the host's options give it
    model: str = ""
    edit_model: str = ""  # that proposes next edits, if it is another one
    device: str = ""
    dtype: str = ""
    place: str = ""  # a sentence about the device: what runs there and why, and what was found
    num_running: int = 0
    num_waiting: int = 0
    num_clients: int = 0
    num_other_clients: int = 0  # excluding the one in `?client=`
    num_buffers: int = 0
    pool_tokens: int = 0
    draft_bytes: int = 0
    kv_bytes: int = 0
    mapped_bytes: int = 0  # of the memory, shared with other processes: weights and programs
    memory_mb: float = 0.0
    last_prompt: Cost | None = None  # names no file, as it may be another client's
    lost: tuple[str, ...] = ()  # phrases: features missing because another program generates
    idle_s: float = 0.0  # seconds since the last use; 0 while busy
