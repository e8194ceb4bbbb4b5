"""Requests, chunks and ends. Plain data, no torch; each Message goes over the wire as it is."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from engine.config import Layout, Lookahead, Message, Sampling, StopRules

MAX_INSTRUCTION_CHARS = 4096
MAX_SNIPPET_CHARS = 16_384  # characters, more than a prompt can show
MAX_DIAGNOSTICS = 64  # of a request
MAX_MESSAGE_CHARS = 1024  # of a diagnostic
_MAX_HISTORY_CHARS = 1 << 20  # of all past edits; the language server tells about 16,000
_Line = Annotated[int, Meta(ge=0, le=2**53 - 1)]  # of a document, from 0


class FinishReason(StrEnum):
    """The reason for the end of a completion."""

    END_TOKEN = "end_token"  # the model's own end of text
    FIM_TOKEN = "fim_token"  # it began another fill-in-the-middle block
    SUFFIX = "suffix"  # it reached the text after the cursor
    INDENTATION = "indentation"  # it left the cursor's block
    REPETITION = "repetition"
    BLANK_LINES = "blank_lines"
    LINE = "line"  # one line was requested
    REJOINED = "rejoined"  # it went on as the text that it changes
    STOP_STRING = "stop_string"  # it reached one of the caller's strings
    TIME = "time"
    UNSURE = "unsure"  # one more word would make the whole text too unlikely
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"
    CANCELLED = "cancelled"
    PREFILLED = "prefilled"  # the request only read its prompt


@dataclass(frozen=True, slots=True)
class Buffer:
    """An open document: its text feeds the n-gram pool, its path names it."""

    path: str
    text: str
    key: str = ""  # distinguishes buffers of one path; if empty, the path is the key


@dataclass(frozen=True, slots=True)
class ClosedBuffers:
    """Closed buffers, whose texts the engine must forget."""

    workspace: str = ""  # of the requests that sent them
    keys: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    cache_scope: str = ""  # prefix of the cache keys of all requests whose prompts may show them
    cache_keys: frozenset[str] = frozenset()  # of completions requested in them
    departed: str = ""  # prefix of the workspaces of a client that has no buffer left open
    principal: str = ""  # owner of the buffers
    is_all: bool = False  # every prompt in the scope, and all texts of `departed` workspaces

    def takes_all_of(self, workspace: str) -> bool:
        """Whether the workspace's client has no buffer open."""
        return (self.is_all or bool(self.departed)) and workspace.startswith(self.departed)

    @classmethod
    def of_all(cls, principal: str, client: str = "") -> Self:
        """Everything that a client sent; without `client`, everything of the principal."""
        scope = f"{client}\0" if client else ""
        return cls(cache_scope=scope, departed=scope, principal=principal, is_all=True)


class Snippet(Message, frozen=True):
    """Whole lines of another file that the model may read before the file at the cursor."""

    path: Annotated[str, Meta(max_length=1024)]
    # Empty for a file that an earlier request showed: what a prompt has of it may stay there.
    text: Annotated[str, Meta(max_length=MAX_SNIPPET_CHARS)]
    is_open: bool = False  # else it comes from the repository's index


class PastEdit(Message, frozen=True, omit_defaults=True):
    """A change that the user made to whole lines of a file, and unchanged lines around it."""

    path: Annotated[str, Meta(max_length=1024)]
    line: _Line  # the first changed one, or the place of the deleted ones, after the change
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    @property
    def num_chars(self) -> int:
        """The characters of all lines and their ends."""
        sides = (self.old, self.new, self.above, self.below)
        return sum(len(line) + 1 for side in sides for line in side)


class Diagnostic(Message, frozen=True):
    """A message of a checker about a line."""

    line: _Line
    message: Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)]


class EditTask(Message, frozen=True, omit_defaults=True):
    """A change to make: what `instruction` says of lines, or without one the likely next change."""

    instruction: Annotated[str, Meta(max_length=MAX_INSTRUCTION_CHARS)] = ""
    first: _Line = 0  # the lines for the instruction, up to, not including, `end`
    end: _Line = 0
    history: Annotated[tuple[PastEdit, ...], Meta(max_length=32)] = ()  # oldest first
    # nearest first
    diagnostics: Annotated[tuple[Diagnostic, ...], Meta(max_length=MAX_DIAGNOSTICS)] = ()

    def __post_init__(self) -> None:
        """Refuse, as a decoder does, a history that takes long to read."""
        if sum(edit.num_chars for edit in self.history) > _MAX_HISTORY_CHARS:
            raise ValueError(f"history has more than {_MAX_HISTORY_CHARS} characters")


class EditOutcome(Message, frozen=True, omit_defaults=True):
    """A change of the document: its lines from `first` up to, not including, `end` are replaced."""

    first: _Line = 0
    end: _Line = 0
    lines: tuple[str, ...] = ()
    probability: float = 1.0  # of all changed tokens together
    refusal: str = ""  # a code that says why nothing is proposed


class ChatMessage(Message, frozen=True):
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str  # names of special tokens in it are plain text


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """Text around a cursor and how to continue it. `prefix + suffix` is the whole document."""

    prefix: str
    suffix: str
    path: str = ""
    open_buffers: tuple[Buffer, ...] = ()  # most related first
    repository: tuple[Snippet, ...] = ()  # of files that are not open, best first
    workspace: str = ""  # of the open buffers; buffers of other workspaces stay
    cache_key: str = ""  # requests with one key, usually of one document, share one cached prompt
    layout: Layout = "line"
    lookahead: Lookahead = field(default_factory=Lookahead)
    sampling: Sampling = field(default_factory=Sampling)
    stop: StopRules = field(default_factory=StopRules)
    principal: str = ""  # owner of the text, which never reaches another principal's answers
    is_raw: bool = False  # `prefix` is the exact prompt; names of special tokens stand for them
    messages: tuple[ChatMessage, ...] = ()  # a chat to answer, instead of `prefix` and `suffix`
    tells_tokens: bool = False  # chunks list their tokens
    edit: EditTask | None = None  # a change to make instead of a text to insert
    copied: str = ""  # a text that the answer mostly repeats, from its first character on


class Cost(Message, frozen=True):
    """A completion's cost. A step is a forward pass; its rows are the current token and drafts."""

    tokens: int
    steps: int
    rows: int  # summed over the steps
    prompt_tokens: int
    reused_tokens: int  # prompt tokens whose keys and values were cached
    prefill_ms: float
    decode_ms: float
    accepted_by_source: dict[str, int]  # tokens by the drafter that proposed them, or `model`
    neighbour_tokens: int = 0  # prompt tokens that show other open files
    neighbours: tuple[str, ...] = ()  # the paths of these files
    num_open: int = 0  # other open files
    repository_tokens: int = 0  # prompt tokens that show files which are not open
    repository: tuple[str, ...] = ()  # the paths of these files
    queue_ms: float = 0.0  # waiting time before it began
    avoids_suffix: bool = False  # the first text was empty or only repeated the suffix

    @property
    def without_names(self) -> Self:
        """A copy with as many files, all of them unnamed."""
        return msgspec.structs.replace(
            self, neighbours=("",) * len(self.neighbours), repository=("",) * len(self.repository)
        )

    @property
    def tokens_per_step(self) -> float:
        """Tokens emitted by one forward pass, on average."""
        return self.tokens / self.steps if self.steps else 0.0

    @property
    def rows_per_step(self) -> float:
        """Rows verified by one forward pass, on average."""
        return self.rows / self.steps if self.steps else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Decoding speed, without prefill."""
        return 1000 * self.tokens / self.decode_ms if self.decode_ms else 0.0


class TokenText(Message, frozen=True):
    """A token and the text it adds; a character cut between tokens belongs to the last of them."""

    text: str
    log_prob: float  # natural logarithm of its probability, at temperature 1


class Chunk(Message, frozen=True, tag="chunk", omit_defaults=True):
    """Text that is final: no later stop rule takes it back."""

    text: str
    tokens: tuple[TokenText, ...] = ()  # if requested: those whose text is complete
    id: str = ""  # of the completion, for feedback
    is_sure: bool = False  # the chunks so far are worth showing, while the next line is judged
    unsure: str = ""  # the text behind them, which may be dropped


class Done(Message, frozen=True, tag="done", omit_defaults=True):
    """The whole completion: the joined chunks, the reason and the cost."""

    text: str
    finish_reason: FinishReason
    cost: Cost
    token_ids: tuple[int, ...] = ()  # these two stay in the engine's process
    log_probs: tuple[float, ...] = ()  # natural logarithms, at temperature 1
    id: str = ""  # of the completion, for feedback
    edit: EditOutcome | None = None  # if the request was for an edit

    @property
    def is_repeat(self) -> bool:
        """Whether there is no text, as it would only repeat what stands after the cursor."""
        return self.finish_reason is FinishReason.SUFFIX and not self.text
