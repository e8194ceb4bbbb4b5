"""One completion between its two threads: it runs on the engine's, its events go to the loop's."""

import asyncio
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from engine.errors import DeviceLostError, ForegramError
from engine.host.failures import log_failure
from engine.host.metrics import Metrics
from engine.host.protocol import Chunk, CompleteEvent, Done, Failed, Timings
from engine.host.served_engine import ServedEngine
from engine.request import CompletionRequest, CompletionResult
from engine.scheduler import Dropped
from engine.turns import Turns


@dataclass(slots=True)
class Run:
    """Made on the event loop's thread; its turns are for the engine's.

    `lose` hears of the end of the engine's device, on the engine's thread.
    """

    engine: ServedEngine
    metrics: Metrics
    make_request: Callable[[], CompletionRequest | None]  # None: its document is closed by now
    lose: Callable[[DeviceLostError], None]
    is_prefill: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    events: asyncio.Queue[CompleteEvent] = field(default_factory=asyncio.Queue)
    queued_at: float = field(default_factory=time.perf_counter)

    def turns(self, cancelled: Callable[[], bool]) -> Turns[None]:
        """Complete, on the engine's thread."""
        try:
            event = yield from self._completing(cancelled)
            if event is None:
                self.dropped(Dropped.CANCELLED)
            else:
                self._tell(event)
        except DeviceLostError as error:
            self.lose(error)  # first: who hears of the failure and asks again is to be refused
            self._fail(error.code, str(error))
        except ForegramError as error:
            self._fail(error.code, str(error))
        except Exception as error:  # noqa: BLE001 - whatever one completion meets, the next is served
            log_failure(f"completion {self.id} failed", error)
            self._fail("internal_error", f"the completion failed; the log names {self.id}")

    def dropped(self, reason: Dropped) -> None:
        """Say why there is no completion."""
        self._count(reason.value)
        if reason is Dropped.CANCELLED:
            self.metrics.cancelled.inc()
        self._tell(Failed(reason.value, f"the request was {reason.value}"))

    def _completing(self, cancelled: Callable[[], bool]) -> Turns[CompleteEvent | None]:
        began = time.perf_counter()
        queue_ms = 1000 * (began - self.queued_at)
        request = self.make_request()
        if request is None:
            return None
        if self.is_prefill:
            yield from self.engine.prefilling(request, cancelled=cancelled)
            self._count("prefilled")
            prefill_ms = 1000 * (time.perf_counter() - began)
            timings = Timings(queue_ms, prefill_ms, 0.0)
            return Done(self.id, "", "prefilled", 0, 0, 0, 0, 0, {}, timings)
        result = yield from self.engine.completing(
            request, on_chunk=lambda chunk: self._tell(Chunk(chunk.text)), cancelled=cancelled
        )
        self.metrics.count(result, queue_ms)
        # All that is not decoding brings the prompt in: to lay it out, too.
        prefill_ms = 1000 * (time.perf_counter() - began) - result.stats.decode_ms
        return _done(self.id, result, Timings(queue_ms, prefill_ms, result.stats.decode_ms))

    def _fail(self, code: str, sentence: str) -> None:
        self._count("failed")
        self._tell(Failed(code, sentence))

    def _count(self, outcome: str) -> None:
        self.metrics.requests.labels(outcome).inc()

    def _tell(self, event: CompleteEvent) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self.loop.call_soon_threadsafe(self.events.put_nowait, event)


def _done(completion_id: str, result: CompletionResult, timings: Timings) -> Done:
    stats = result.stats
    return Done(
        id=completion_id,
        text=result.text,
        finish_reason=result.finish_reason.value,
        tokens=stats.tokens,
        steps=stats.steps,
        rows=stats.rows,
        prompt_tokens=stats.prompt_tokens,
        reused_tokens=stats.reused_tokens,
        accepted_by_source=dict(stats.accepted_by_source),
        timings=timings,
        neighbour_tokens=stats.neighbour_tokens,
        neighbours=stats.neighbours,
        num_open=stats.num_open,
    )
