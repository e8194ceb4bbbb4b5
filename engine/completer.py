"""The interface of a loaded engine. Importing it loads no torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, Unpack

from engine.request import Chunk, ClosedBuffers, CompletionRequest, Done, EditTask


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """The model, its device and the format of its weights, each as reports name it."""

    model: str
    device: str
    dtype: str
    lost: tuple[str, ...] = ()  # features, as phrases, missing if another program generates
    context_len: int = 0  # tokens of prompt and answer together
    has_chat: bool = False  # it answers messages, by the model's own template
    edit_model: str = ""  # that proposes next edits, if it is another one
    threads: int = 1  # that compute on the CPU
    place: str = ""  # a sentence on device and backend, why not a better one, and findings


@dataclass(frozen=True, slots=True)
class EngineUsage:
    """Memory that an engine holds for one principal."""

    pool_tokens: int = 0  # of texts that drafts come from
    draft_bytes: int = 0  # memory of these texts and of what is learned for drafts
    kv_bytes: int = 0  # memory of the cached prompts


class Calls(TypedDict):
    """What a completion calls on the engine's thread."""

    on_chunk: Callable[[Chunk], None]  # with final text
    is_cancelled: Callable[[], bool]  # before each step
    on_end: Callable[[Any], None]  # with the sequence, after the last step


class ServedSequence(Protocol):
    """A completion that the engine's loop runs."""

    is_done: bool  # it needs no more steps
    is_waiting: bool  # for memory that others hold
    one_row_ms: float  # that a step without drafts takes here; 0 if unknown

    def result(self) -> Done:
        """Return the result. Raises the error that ended it."""
        ...

    def close(self) -> None:
        """End it if the loop stopped before its end."""
        ...


class ServedEngine(Protocol):
    """An engine that runs many completions together, on one thread."""

    @property
    def info(self) -> EngineInfo:
        """The model and its current device."""
        ...

    max_sequences: int  # completions that may run together

    def usage_of(self, principal: str, /) -> EngineUsage:
        """Return the memory of one principal, or of all if unnamed. Safe from any thread."""
        ...

    def check_can_edit(self, task: EditTask, /) -> None:
        """Raise UnsupportedModelError if the model makes no such edits. Safe from any thread."""
        ...

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[Chunk], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Done:
        """Complete a request; `on_chunk` gets final text, `cancelled` is called at each step."""
        one = self.sequence(
            request, on_chunk=on_chunk, is_cancelled=cancelled, on_end=lambda _: None
        )
        try:
            self.run(lambda: [] if one.is_done else [one])
        finally:
            one.close()
        return one.result()

    def run(self, admit: Callable[[], Sequence[Any]], /) -> None:
        """Run admitted sequences until `admit` returns none."""
        ...

    def sequence(self, request: CompletionRequest, **calls: Unpack[Calls]) -> ServedSequence:
        """Make a completion for the loop to run."""
        ...

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget everything learned from these buffers."""
        ...

    def close(self) -> None:
        """Save the learned costs and tables."""
        ...
