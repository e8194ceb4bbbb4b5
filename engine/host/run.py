"""One completion between its two threads: it runs on the engine's, its events go to the loop's."""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields

from engine.errors import DeviceLostError, ForegramError
from engine.host.failures import FailureLog, log_failure
from engine.host.metrics import Metrics
from engine.host.protocol import Chunk, CompleteEvent, Done, Failed, Timings, TokenText
from engine.host.served_engine import ServedEngine, ServedSequence
from engine.request import CompletionChunk, CompletionRequest, CompletionResult, CompletionStats
from engine.scheduler import Dropped

# Nobody sees that text comes so much later; a small model writes several tokens in it.
_LOOK_S = 0.005


@dataclass(slots=True)
class EventRelay:
    """Events on their way to the loop's thread, which is woken as seldom as can be.

    Each time takes some from the engine's thread. The first event and the last one wake it. Once
    text was told, the loop looks by itself a little later, as long as more of it comes.
    """

    loop: asyncio.AbstractEventLoop
    events: asyncio.Queue[CompleteEvent] = field(default_factory=asyncio.Queue)
    _untold: list[CompleteEvent] = field(default_factory=list)  # the loop has not come to them yet
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_woken: bool = False  # it is about to look
    _looks_again: bool = False  # within `_LOOK_S`

    def tell(self, event: CompleteEvent) -> None:
        """Have the loop hear of it. Any thread may call it."""
        with self._lock:
            self._untold.append(event)
            can_wait = self._is_woken or (self._looks_again and isinstance(event, Chunk))
            self._is_woken = self._is_woken or not can_wait
        if not can_wait:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._lock:
            untold, self._untold = self._untold, []
            has_text = any(isinstance(one, Chunk) for one in untold[-1:])
            begins = has_text and not self._looks_again
            self._is_woken, self._looks_again = False, self._looks_again or begins
        self._hand_over(untold, looks_again=begins)

    def _look(self) -> None:
        with self._lock:
            untold, self._untold = self._untold, []
            self._looks_again = bool(untold)
        self._hand_over(untold, looks_again=bool(untold))

    def _hand_over(self, untold: list[CompleteEvent], *, looks_again: bool) -> None:
        for event in untold:
            self.events.put_nowait(event)
        if looks_again:
            self.loop.call_later(_LOOK_S, self._look)


@dataclass(slots=True)
class Run:
    """Made on the event loop's thread; `begin` is for the engine's.

    `lose` hears of the end of the engine's device, on the engine's thread.
    """

    engine: ServedEngine
    metrics: Metrics
    make_request: Callable[[], CompletionRequest | None]  # None: its document is closed by now
    lose: Callable[[DeviceLostError], None]
    is_prefill: bool
    failures: FailureLog = field(default_factory=FailureLog)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    told: EventRelay = field(default_factory=lambda: EventRelay(asyncio.get_running_loop()))
    queued_at: float = field(default_factory=time.perf_counter)
    _began: float = 0.0

    def begin(self, is_cancelled: Callable[[], bool]) -> ServedSequence | None:
        """Begin to complete, on the engine's thread; None where nothing is to be run."""
        self._began = time.perf_counter()
        try:
            request = self.make_request()
            if request is not None:
                return self.engine.sequence(
                    request,
                    on_chunk=self._tell,
                    is_cancelled=is_cancelled,
                    on_end=self._end,
                    is_prefill=self.is_prefill,
                )
        except Exception as error:  # noqa: BLE001 - whatever one completion meets, the next is served
            self._fail(error)
        else:
            self.dropped(Dropped.CANCELLED)
        return None

    def dropped(self, reason: Dropped) -> None:
        """Say why there is no completion."""
        self.metrics.count_request(reason.value)
        self.told.tell(failed(reason))

    def _tell(self, chunk: CompletionChunk) -> None:
        tokens = tuple(TokenText(one.text, one.log_prob) for one in chunk.tokens)
        self.told.tell(Chunk(chunk.text, self.id, tokens))

    def _end(self, sequence: ServedSequence) -> None:
        """Say what became of it, on the engine's thread."""
        try:
            result = sequence.result()
        except Exception as error:  # noqa: BLE001 - likewise
            self._fail(error)
            return
        queue_ms = 1000 * (self._began - self.queued_at)
        # All that is not decoding brings the prompt in: to lay it out, too.
        decode_ms = 0.0 if self.is_prefill else result.stats.decode_ms
        prefill_ms = 1000 * (time.perf_counter() - self._began) - decode_ms
        timings = Timings(queue_ms, prefill_ms, decode_ms)
        if self.is_prefill:
            self.metrics.count_request("prefilled")
            self.told.tell(Done(self.id, "", "prefilled", 0, 0, 0, 0, 0, {}, timings))
            return
        self.metrics.count(result, queue_ms)
        self.told.tell(_done(self.id, result, timings))

    def _fail(self, error: Exception) -> None:
        if isinstance(error, DeviceLostError):
            self.lose(error)  # first, so that a retry is refused
        if isinstance(error, ForegramError):
            self.failures.note(error)
            event = Failed(error.code, error.told, error.retry_after_s)
        else:
            log_failure(f"completion {self.id} failed", error)
            event = Failed("internal_error", f"the completion failed; the log names {self.id}")
        error.__traceback__ = None  # its frames know the sequence, and so the memory of its slot
        self.metrics.count_request("failed")
        self.told.tell(event)


def failed(reason: Dropped) -> Failed:
    """What who asked hears of a job that the scheduler dropped or ended."""
    return Failed(reason.value, f"the request was {reason.value}")


def _done(completion_id: str, result: CompletionResult, timings: Timings) -> Done:
    return Done(
        id=completion_id,
        text=result.text,
        finish_reason=result.finish_reason.value,
        timings=timings,
        **{name: getattr(result.stats, name) for name in _COSTS},
    )


# What a completion cost has the same names in the engine and on the wire.
_COSTS = {one.name for one in fields(CompletionStats)} & set(Done.__struct_fields__)
