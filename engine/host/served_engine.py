"""The engine as the host needs it. Importing this loads no torch."""

from collections.abc import Callable
from typing import Protocol

from engine.completer import EngineInfo
from engine.request import ClosedBuffers, CompletionChunk, CompletionRequest, CompletionResult
from engine.turns import Turns


class ServedEngine(Protocol):
    """A loaded engine that works in turns, for one thread."""

    @property
    def info(self) -> EngineInfo:
        """The engine's model and machine."""
        ...

    @property
    def num_lanes(self) -> int:
        """Completions that may go on side by side."""
        ...

    @property
    def pool_tokens(self) -> int:
        """Tokens that drafts are found in."""
        ...

    @property
    def kv_bytes(self) -> int:
        """Memory of the cached prompts."""
        ...

    def expect(self, num_running: int) -> None:
        """So many completions go on side by side from now on."""
        ...

    def completing(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        cancelled: Callable[[], bool],
    ) -> Turns[CompletionResult]:
        """Complete; `cancelled` is asked before every step."""
        ...

    def prefilling(
        self, request: CompletionRequest, *, cancelled: Callable[[], bool]
    ) -> Turns[None]:
        """Read a prompt for later."""
        ...

    def forget(self, closed: ClosedBuffers) -> None:
        """Use no longer what was learned from these buffers."""
        ...

    def close(self) -> None:
        """Keep what was learned."""
        ...
