"""An engine without a model: it says what it was told to say, in chunks, and can be cancelled."""

from collections.abc import Callable, Sequence

from engine import (
    CompletionChunk,
    CompletionRequest,
    CompletionResult,
    CompletionStats,
    FinishReason,
)
from engine.completer import EngineInfo

INFO = EngineInfo("fake-1b", "cpu", "float32")


class FakeEngine:
    """Streams `chunks`; `before_chunk` runs before each, so that a test can interfere."""

    def __init__(
        self,
        chunks: Sequence[str],
        finish_reason: FinishReason = FinishReason.SUFFIX,
        before_chunk: Callable[[int], None] = lambda index: None,
    ) -> None:
        self.info = INFO
        self.requests: list[CompletionRequest] = []
        self.is_closed = False
        self._chunks = chunks
        self._finish_reason = finish_reason
        self._before_chunk = before_chunk

    def close(self) -> None:
        self.is_closed = True

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        cancelled: Callable[[], bool],
    ) -> CompletionResult:
        self.requests.append(request)
        said, reason = [], self._finish_reason
        for index, text in enumerate(self._chunks):
            self._before_chunk(index)
            if cancelled():
                reason = FinishReason.CANCELLED
                break
            said.append(text)
            on_chunk(CompletionChunk(text))
        stats = CompletionStats(
            tokens=4 * len(said),
            steps=2 * len(said),
            rows=16 * len(said),
            prompt_tokens=123,
            reused_tokens=0,
            prefill_ms=250.0,
            decode_ms=100.0,
            accepted_by_source={"open_buffer": 2},
        )
        return CompletionResult("".join(said), (1, 2, 3), reason, stats)
