"""A completion: what is asked for, the events that answer it, and what becomes of it."""

from typing import Annotated, Literal

from msgspec import Meta

from engine.host.protocol.message import (
    BufferSync,
    Integer,
    LineSplice,
    Message,
    NotNegative,
    Position,
)

FeedbackKind = Literal["shown", "accepted", "partly_accepted", "rejected"]

MAX_TOKENS = 1024  # of a completion: nobody reads a longer one, and it keeps others waiting
MAX_SNIPPETS = 64  # of the repository in a request
MAX_SNIPPET_CHARS = 16_384  # of each: more than a prompt can show
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


class Sampled(Message, frozen=True):
    """How tokens are drawn; temperature 0 is greedy."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class Bounds(Message, frozen=True):
    """When a completion ends. `max_tokens` 0 prefills only."""

    max_tokens: Annotated[int, Meta(ge=0, le=MAX_TOKENS)] = 128
    single_line: bool = False
    time_limit_ms: NotNegative | None = None  # judged at line ends
    min_confidence: Annotated[float, Meta(ge=0, le=1)] = 0.0  # of the text as a whole


class RepositorySnippet(Message, frozen=True):
    """Whole lines of a file that is not open."""

    path: Annotated[str, Meta(max_length=1024)]
    text: Annotated[str, Meta(max_length=MAX_SNIPPET_CHARS)]


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
    layout: Literal["line", "psm"] = "line"
    lookahead: Annotated[str, Meta(max_length=64)] = "auto"
    sampling: Sampled = Sampled()
    bounds: Bounds = Bounds()
    # What the client's index shows of files that are not open, the best first.
    repository: Annotated[tuple[RepositorySnippet, ...], Meta(max_length=MAX_SNIPPETS)] = ()
    # What became of earlier completions; what the host does not know by now is passed over.
    feedback: Annotated[tuple[Feedback, ...], Meta(max_length=MAX_FEEDBACK)] = ()
    # Nobody waits for a prefetch: any other request goes first, and ends this one.
    is_prefetch: bool = False

    def __post_init__(self) -> None:
        uris = [self.uri, *(one.uri for one in (*self.above, *self.below))]
        if len(set(uris)) < len(uris):
            raise ValueError("each cell of a notebook is named once, and not the one completed")


class TokenText(Message, frozen=True):
    """A token by the text that it adds, and the logarithm of its probability."""

    text: str
    log_prob: float


class Chunk(Message, frozen=True, tag="chunk", omit_defaults=True):
    """Text that is final."""

    text: str
    id: str = ""  # of the completion, for feedback
    tokens: tuple[TokenText, ...] = ()  # of the text, which drop-in APIs tell who asks for them


class Timings(Message, frozen=True):
    """Where the time of a completion went."""

    queue_ms: float
    prefill_ms: float
    decode_ms: float


class Done(Message, frozen=True, tag="done"):
    """The last line of a completion: its whole text and what it cost."""

    id: str  # for feedback
    text: str
    finish_reason: str  # a value of engine.FinishReason
    tokens: int
    steps: int
    rows: int
    prompt_tokens: int
    reused_tokens: int  # of the prompt, found in the KV cache
    accepted_by_source: dict[str, int]
    timings: Timings
    neighbour_tokens: int = 0  # of the prompt, that show other open files
    neighbours: tuple[str, ...] = ()  # the paths of these files
    num_open: int = 0  # other files of the client that were open
    repository_tokens: int = 0  # of the prompt, that show files which are not open
    repository: tuple[str, ...] = ()  # the paths of these files


class Failed(Message, frozen=True, tag="failed", omit_defaults=True):
    """The last line of a completion that failed after its stream had begun."""

    code: str
    message: str
    retry_after_s: float | None = None  # when to ask again, where that is known


CompleteEvent = Chunk | Done | Failed
