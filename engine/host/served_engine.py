"""The engine as the host needs it. Importing this loads no torch."""

import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engine.completer import EngineUsage, LoadedEngine
from engine.memory import use_few_arenas
from engine.progress import Progress
from engine.request import ClosedBuffers, CompletionChunk, CompletionRequest, CompletionResult
from engine.scheduler import Running

_SWITCH_S = 0.0005


class ServedSequence(Running, Protocol):
    """A completion that the engine's loop runs."""

    def result(self) -> CompletionResult:
        """Return what became of it. Raises the error that ended it."""
        ...


class ServedEngine(LoadedEngine, Protocol):
    """Runs many completions side by side."""

    max_sequences: int  # completions that may go on side by side

    @property
    def pool_tokens(self) -> int:
        """Tokens that drafts are found in."""
        ...

    @property
    def kv_bytes(self) -> int:
        """Memory of the cached prompts."""
        ...

    def usage_of(self, principal: str, /) -> EngineUsage:
        """What is held for a principal. Any thread may ask."""
        ...

    def run(self, admit: Callable[[], Sequence[Any]], /) -> None:
        """Run what is admitted until nothing is any more."""
        ...

    def sequence(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        is_cancelled: Callable[[], bool],
        on_end: Callable[[ServedSequence], None],
        is_prefill: bool,
    ) -> ServedSequence:
        """A completion; `is_cancelled` is asked before every step, `on_end` hears of the last.

        `is_prefill`: only its prompt is read, for later.
        """
        ...

    def forget(self, closed: ClosedBuffers) -> None:
        """Use no longer what was learned from these buffers."""
        ...


def become_host() -> None:
    """Set this process up; to be called before there are threads."""
    # The engine's thread gives the interpreter away so often; by default a request waits for 5 ms
    # at each of its steps.
    sys.setswitchinterval(_SWITCH_S)
    use_few_arenas()


def kept_for_good(load: Callable[[Progress], ServedEngine]) -> Callable[[Progress], ServedEngine]:
    """`load`, and no collection of garbage looks through what is loaded then.

    That is some 300,000 objects, most of them torch's: 0.15 s in which everybody waits.
    """

    def loaded(progress: Progress) -> ServedEngine:
        engine = load(progress)
        gc.collect()  # or what loading left behind would be kept, too
        gc.freeze()
        return engine

    return loaded
