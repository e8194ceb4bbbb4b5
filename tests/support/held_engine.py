"""An engine under a test's control: it has no model, and writes what the test scripts."""

import hashlib
import re
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.completer import EngineInfo, EngineUsage, ServedEngine
from engine.errors import DeviceLostError
from engine.request import (
    Chunk,
    ClosedBuffers,
    CompletionRequest,
    Cost,
    Done,
    EditOutcome,
    EditTask,
    FinishReason,
)

INFO = EngineInfo("fake-1b", "cpu", "float32")
DEVICE_FAULT = "the device cuda:0 is lost: CUDA error: unknown error"
_ECHO_STEP_S = 0.002  # long enough to interrupt a completion in its middle


@dataclass
class HeldEngine(ServedEngine):
    """Writes `words`, one a step; a step waits for `permits` if a test sets `is_held`.

    Asked to avoid the suffix, it writes `others`. A word may be a whole chunk, which tells what is
    sure. Calls `before_word` with each word's place, so that a test can interfere.
    """

    words: tuple[str | Chunk, ...] = ("one ", "two ", "three")
    others: tuple[str | Chunk, ...] | None = None
    is_held: bool = False
    ending: FinishReason = FinishReason.END_TOKEN
    accepted: dict[str, int] = field(default_factory=lambda: {"model": 3})  # tokens by source
    edit: EditOutcome | None = None  # what its words are, if an edit is requested
    before_word: Callable[[int], object] = lambda _: None
    permits: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    requests: list[CompletionRequest] = field(default_factory=list)
    began: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ended: list[FinishReason] = field(default_factory=list)
    forgotten: list[ClosedBuffers] = field(default_factory=list)
    info = INFO
    is_closed = False
    max_sequences = 1

    def run(self, admit: Callable[[], Sequence[Any]]) -> None:
        while running := admit():
            for one in running:
                one.advance()

    def sequence(
        self, request: CompletionRequest, *, on_chunk, is_cancelled, on_end
    ) -> "HeldSequence":
        if not request.stop.max_tokens:
            return HeldSequence(self.prefilling(request), on_end)
        return HeldSequence(
            self.completing(request, on_chunk=on_chunk, cancelled=is_cancelled), on_end
        )

    def completing(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[Chunk], None],
        cancelled: Callable[[], bool],
    ) -> Generator[None, None, Done]:
        self.requests.append(request)
        self.began.release()
        said, words, reason = "", self.words, self.ending
        if request.sampling.avoids_suffix and self.others is not None:
            words, reason = self.others, FinishReason.END_TOKEN
        for place, word in enumerate(words):
            self.before_word(place)
            while self.is_held and not cancelled() and not self.permits.acquire(timeout=0.01):
                pass
            if cancelled():
                reason = FinishReason.CANCELLED
                break
            chunk = word if isinstance(word, Chunk) else Chunk(word)
            said += chunk.text
            on_chunk(chunk)
            yield
        self.ended.append(reason)
        shown = tuple(buffer.path for buffer in request.open_buffers)
        cost = Cost(
            *(len(said.split()), 3, 6, 100, 90, 5.0, 7.0, self.accepted),
            neighbour_tokens=10 * len(shown),
            neighbours=shown,
            num_open=len(shown),
            repository_tokens=7 * len(request.repository),
            repository=tuple(one.path for one in request.repository),
            avoids_suffix=request.sampling.avoids_suffix,
        )
        return Done(said, reason, cost, (1, 2, 3), edit=self.edit if request.edit else None)

    def prefilling(self, request: CompletionRequest) -> Generator[None, None, Done]:
        self.requests.append(request)
        yield
        cost = Cost(0, 0, 0, 100, 90, 5.0, 0.0, {})
        return Done("", FinishReason.PREFILLED, cost)

    def check_can_edit(self, task: EditTask) -> None:
        """It writes any edit."""

    def usage_of(self, principal: str) -> EngineUsage:
        return EngineUsage(pool_tokens=17, kv_bytes=1024)

    def forget(self, closed: ClosedBuffers) -> None:
        self.forgotten.append(closed)

    def close(self) -> None:
        self.is_closed = True


@dataclass(eq=False)
class HeldSequence:
    """A sequence of an engine without a model: a step of it is one turn of `work`."""

    work: Generator[None, None, Done]
    on_end: Callable[["HeldSequence"], None]
    is_done: bool = False
    is_waiting: bool = False
    one_row_ms: float = 4.0
    ended: Done | None = None
    error: Exception | None = None

    def advance(self) -> None:
        try:
            next(self.work)
        except StopIteration as end:
            self._end(end.value, None)
        except Exception as error:  # noqa: BLE001 - as the engine's own sequences do
            self._end(None, error)

    def close(self) -> None:
        self.work.close()

    def result(self) -> Done:
        if self.error is not None:
            raise self.error
        assert self.ended is not None
        return self.ended

    def _end(self, ended: Done | None, error: Exception | None) -> None:
        self.is_done, self.ended, self.error = True, ended, error
        self.on_end(self)


def digest(prefix: str, suffix: str) -> str:
    """Return an `EchoEngine`'s answer at this place; halves of characters become question marks."""
    return hashlib.sha256(f"{prefix}\0{suffix}".encode("utf-8", "replace")).hexdigest()


class EchoEngine(HeldEngine):
    """Writes the digest of the text, a piece a step."""

    before_word: Callable[[int], object] = lambda _: time.sleep(_ECHO_STEP_S)

    def completing(self, request: CompletionRequest, **how: Any) -> Any:
        self.words = tuple(re.findall("." * 8, digest(request.prefix, request.suffix)))
        return (yield from super().completing(request, **how))


class LosingEngine(HeldEngine):
    def completing(self, *_: Any, **__: Any) -> Any:
        raise DeviceLostError(DEVICE_FAULT)
