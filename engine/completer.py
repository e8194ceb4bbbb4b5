"""A loaded engine as its users see it. Importing this loads no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.request import CompletionChunk, CompletionRequest, CompletionResult


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


class LoadedEngine(Protocol):
    """A loaded engine, whatever is asked of it; for one thread."""

    @property
    def info(self) -> EngineInfo:
        """The model, and where it runs, as it is now."""
        ...

    def close(self) -> None:
        """Keep what was learned."""
        ...


class Completer(LoadedEngine, Protocol):
    """Completes one request after the other."""

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        cancelled: Callable[[], bool],
    ) -> CompletionResult:
        """Complete; `cancelled` is asked before every step."""
        ...
