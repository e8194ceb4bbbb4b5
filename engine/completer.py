"""A loaded engine as its users see it. Importing this loads no torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.request import Chunk, ClosedBuffers, CompletionRequest, CompletionResult
from engine.scheduler import Running


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """The model, where it runs, and how its weights are held, each as reports name it.

    `lost` says in phrases what its users go without, as another program generates. `place` says in a
    sentence on which device the model runs, by what, why not by something better, and what was found
    there.
    """

    model: str
    device: str
    dtype: str
    lost: tuple[str, ...] = ()
    context_len: int = 0  # tokens of prompt and answer together
    place: str = ""


@dataclass(frozen=True, slots=True)
class EngineUsage:
    """What an engine holds for one principal."""

    pool_tokens: int = 0  # that drafts are found in
    kv_bytes: int = 0  # memory of the cached prompts


class ServedSequence(Running, Protocol):
    """A completion that the engine's loop runs."""

    def result(self) -> CompletionResult:
        """Return what became of it. Raises the error that ended it."""
        ...

    def close(self) -> None:
        """End it where the loop was left before its end."""
        ...


class ServedEngine(Protocol):
    """Runs many completions side by side, on one thread."""

    @property
    def info(self) -> EngineInfo:
        """The model, and where it runs, as it is now."""
        ...

    max_sequences: int  # completions that may go on side by side

    def usage_of(self, principal: str, /) -> EngineUsage:
        """What is held for a principal; without a name, for all. Any thread may ask."""
        ...

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[Chunk], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> CompletionResult:
        """Complete one; `on_chunk` gets text once it is final, `cancelled` is called at each step."""
        one = self.sequence(
            request, on_chunk=on_chunk, is_cancelled=cancelled, on_end=lambda _: None
        )
        try:
            self.run(lambda: [] if one.is_done else [one])
        finally:
            one.close()
        return one.result()

    def run(self, admit: Callable[[], Sequence[Any]], /) -> None:
        """Run what is admitted until nothing is any more."""
        ...

    def sequence(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[Chunk], None],
        is_cancelled: Callable[[], bool],
        on_end: Callable[[ServedSequence], None],
    ) -> ServedSequence:
        """A completion; `is_cancelled` is called before every step, `on_end` after the last."""
        ...

    def forget(self, closed: ClosedBuffers) -> None:
        """Use no longer what was learned from these buffers."""
        ...

    def close(self) -> None:
        """Keep what was learned."""
        ...
