"""A loaded engine as its users see it. Importing this loads no torch."""

from collections.abc import Callable
from typing import Protocol

from engine.request import CompletionChunk, CompletionRequest, CompletionResult


class EngineInfo(Protocol):
    """What an engine says of itself."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def device(self) -> str:
        """Where it runs."""
        ...

    @property
    def dtype(self) -> str:
        """How its weights are held."""
        ...


class Completer(Protocol):
    """A loaded engine, as its users need it; for one thread."""

    @property
    def info(self) -> EngineInfo:
        """The engine's model and machine."""
        ...

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        cancelled: Callable[[], bool],
    ) -> CompletionResult:
        """Complete; `cancelled` is asked before every step."""
        ...

    def close(self) -> None:
        """Keep what was learned."""
        ...
