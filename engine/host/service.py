"""Completions as a service: the event loop's side of the engine's thread.

The engine is loaded and runs on a thread of its own; the event loop hands it jobs and hears of
their events. Nothing here waits for the engine but by awaiting.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from engine.completer import EngineUsage
from engine.errors import DeviceLostError, ForegramError
from engine.host.asked import Asked
from engine.host.buffers import ClientBuffers, ClientId, spliced, split_at
from engine.host.cells import CellTexts
from engine.host.completion_registry import CompletionRegistry, UnknownCompletionError
from engine.host.failures import FailureLog
from engine.host.metrics import Metrics
from engine.host.principals import Principal
from engine.host.protocol import (
    Chunk,
    CompleteEvent,
    CompleteRequest,
    Done,
    Failed,
    Feedback,
    HostState,
    LoadProgress,
    Problem,
    PromptUse,
)
from engine.host.quotas import QuotaKeeper
from engine.host.request_builder import closed_buffers, request_builder
from engine.host.run import Run, failed
from engine.host.served_engine import ServedEngine
from engine.progress import Progress
from engine.request import ClosedBuffers, CompletionRequest, FinishReason
from engine.scheduler import Dropped, Job, Scheduler

_ENDED = FinishReason.CANCELLED.value
_STOPPING = Problem("stopping", "the host is stopping")
_JOIN_S = 10.0  # for the engine's thread to end its step and to save what it has learned
_log = logging.getLogger("foregram.host")


class NotReadyError(Exception):
    """The engine is loading, has failed, or stops; the problem says which."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _LoadedSoFar(Progress):
    """The engine's progress, for whoever asks."""

    def __init__(self) -> None:
        self.now: LoadProgress | None = None

    def begin(self, task: str, total: int) -> None:
        self.now = LoadProgress(task, 0, total)

    def advance(self, amount: int) -> None:
        if self.now is not None:
            self.now = LoadProgress(self.now.task, self.now.done + amount, self.now.total)

    def end(self) -> None:
        self.now = None

    def tell(self, sentence: str) -> None:
        _log.info("%s", sentence)


class CompletionService:
    """The engine behind a queue. Its public methods are for the event loop's thread."""

    def __init__(
        self,
        load: Callable[[Progress], ServedEngine],
        requested_model: str = "",
        limits: QuotaKeeper | None = None,
    ) -> None:
        self.requested_model = requested_model
        self.metrics = Metrics()
        self.limits = limits or QuotaKeeper()
        self.buffers = ClientBuffers(self.limits.of)
        self.scheduler = Scheduler(most_running=self._most_running)
        self.last_prompts: dict[Principal, PromptUse] = {}
        self.used_at = time.monotonic()  # not by who reads status, health or metrics
        self.loaded = _LoadedSoFar()
        self.engine: ServedEngine | None = None  # None until it is loaded
        self.problem: Problem | None = None  # why it could not be, or cannot run any more
        self.lost: DeviceLostError | None = None  # what ended its device, for this process
        self._load = load
        self._end: Callable[[], None] = lambda: None
        self._served_since: float | None = None
        self._is_stopping = False
        self._registry = CompletionRegistry(self.metrics)
        self._seen: set[Principal] = set()  # of whom the engine may know something
        self._bufferless: dict[ClientId, float] = {}  # clients of drop-in APIs: when they asked
        self._failures = FailureLog()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    @property
    def state(self) -> HostState:
        """What the host is doing."""
        if self._is_stopping:
            return "stopping"
        if self.problem is not None:
            return "failed"
        return "loading" if self.engine is None else "ready"

    @property
    def is_busy(self) -> bool:
        """Whether the model loads, or a completion runs or waits."""
        return self.state == "loading" or bool(
            self.scheduler.num_running or self.scheduler.num_waiting
        )

    @property
    def idle_s(self) -> float:
        """Seconds since the last message of a client; 0 while the host is busy."""
        return 0.0 if self.is_busy else time.monotonic() - self.used_at

    @property
    def served_s(self) -> float:
        """Seconds since the first completion was done; 0 before."""
        return 0.0 if self._served_since is None else time.monotonic() - self._served_since

    def gauges(self) -> dict[str, float]:
        """What is so now."""
        engine = self.engine
        return {
            "running": self.scheduler.num_running,
            "waiting": self.scheduler.num_waiting,
            "clients": self.buffers.num_clients,
            "buffers": self.buffers.num_buffers,
            "pool_tokens": engine.pool_tokens if engine else 0,
            "kv_bytes": engine.kv_bytes if engine else 0,
        }

    def gauges_of(self, principal: Principal) -> dict[str, float]:
        """What is so now for one of those whom the host serves."""
        buffers, load = self.buffers.usage_of(principal), self.scheduler.load_of(principal.name)
        usage = self.engine.usage_of(principal.name) if self.engine else EngineUsage()
        return {
            "running": load.running,
            "waiting": load.waiting,
            "clients": buffers.clients,
            "buffers": buffers.buffers,
            "pool_tokens": usage.pool_tokens,
            "kv_bytes": usage.kv_bytes,
            "memory_bytes": buffers.num_bytes + usage.kv_bytes,
        }

    @property
    def is_working(self) -> bool:
        """Whether the engine's thread still loads or runs."""
        return self._thread.is_alive()

    def start(self, end: Callable[[], None] = lambda: None) -> None:
        """Begin to load. `end` is called, from any thread, where the device was lost."""
        self._end = end
        self._thread.start()

    def end_runs(self) -> None:
        """End what runs within a step; who asked for it hears that the host stops."""
        self._is_stopping = True
        self.scheduler.stop()

    async def stop(self) -> None:
        """End what runs, and wait for the engine's thread, though not for ever."""
        self.end_runs()
        if self.engine is None:
            return  # a model that still loads ends with the process
        await asyncio.to_thread(self._thread.join, _JOIN_S)
        if self._thread.is_alive():
            _log.error(
                "the engine does not end within %.0f s: the process ends without it", _JOIN_S
            )

    def complete(
        self, principal: Principal, message: CompleteRequest
    ) -> AsyncGenerator[CompleteEvent]:
        """Sync, and complete as `stream` does.

        Raises NotReadyError, VersionConflictError, InputError, QuotaError and ConfigurationError
        at once.
        """
        client = ClientId(principal, message.client)
        self._record_known(principal, message.feedback)  # first: it does not come a second time
        self.buffers.sync(client, message.workspace, message.sync)
        held = self.buffers.get(client, message.uri, message.version)
        self.ready_engine()
        others = self.buffers.others(client, held)
        is_open = partial(self.buffers.holds, client)
        prefix, suffix = split_at(spliced(held.lines, message.overlay), message.position)
        get = partial(self.buffers.get, client)
        cells = CellTexts.of(message.above, message.below, get)
        make = request_builder(message, prefix, suffix, held, cells, others, is_open)
        is_prefill = message.bounds.max_tokens == 0
        asked = Asked(
            principal=principal,
            client=message.client,
            document=message.uri,
            make=make,
            is_prefill=is_prefill,
            is_prefetch=message.is_prefetch,
            has_buffers=True,
        )
        return self.stream(asked)

    def stream(self, asked: Asked) -> AsyncGenerator[CompleteEvent]:
        """Queue a completion, and return its events; whoever stops to listen cancels it.

        The last event is Done or Failed. It is queued when the first one is awaited. Raises
        NotReadyError at once.
        """
        engine = self.ready_engine()
        make = partial(self._made, asked)
        run = Run(engine, self.metrics, make, self._lose, asked.is_prefill, self._failures)
        return self._events(run, asked)

    def _made(self, asked: Asked) -> CompletionRequest | None:
        """The request, in the name of who asks, and no longer than that one's may be."""
        request = asked.make()
        if request is None:
            return None
        most = self.limits.of(asked.principal).tokens
        stop = replace(request.stop, max_tokens=min(request.stop.max_tokens, most))
        return replace(request, principal=asked.principal.name, stop=stop)

    def _most_running(self, principal: str) -> int:
        return self.limits.of(Principal(principal)).running

    async def _events(self, run: Run, asked: Asked) -> AsyncGenerator[CompleteEvent]:
        principal = asked.principal
        self._note(asked)
        job = Job(
            *(asked.client, asked.document, run.begin, run.dropped, asked.is_prefetch),
            principal=principal.name,
        )
        self.scheduler.submit(job)
        written = 0
        try:
            while True:
                event = self._as_told(await run.told.events.get(), job)
                if principal not in self._seen:  # it was let in by a token that is no longer known
                    event = failed(Dropped.CANCELLED)
                if isinstance(event, Chunk):  # an editor may show it before the end
                    written += len(event.text)
                    self._registry.add(principal, event.id, written)
                if isinstance(event, Done):
                    self._note_done(principal, event)
                yield event
                if not isinstance(event, Chunk):
                    return
        finally:
            self.scheduler.cancel(job)
            self.used_at = time.monotonic()
            if principal in self._seen:
                self._note(asked)

    def _note_done(self, principal: Principal, event: Done) -> None:
        self._served_since = self._served_since or time.monotonic()
        self._registry.add(principal, event.id, len(event.text))
        if event.prompt_tokens:  # what only read a prompt says nothing of it
            self.last_prompts[principal] = PromptUse.of(event)

    def _note(self, asked: Asked) -> None:
        """Remember who is there, so that what they send is forgotten once they are not."""
        self._seen.add(asked.principal)
        if not asked.has_buffers:
            self._bufferless[ClientId(asked.principal, asked.client)] = time.monotonic()

    def ready_engine(self) -> ServedEngine:
        """The engine. Raises NotReadyError."""
        if self.engine is None or self.state != "ready":
            raise NotReadyError(self._not_ready())
        return self.engine

    def _as_told(self, event: CompleteEvent, job: Job) -> CompleteEvent:
        """What the host ended is no completion, whatever was written of it."""
        if not isinstance(event, Done) or event.finish_reason != _ENDED:
            return event
        if self._is_stopping:
            return Failed(_STOPPING.code, _STOPPING.message)
        return failed(Dropped.SUPERSEDED) if job.is_superseded else event

    def record(self, principal: Principal, feedback: Feedback) -> None:
        """Count what became of a completion. Raises UnknownCompletionError."""
        self.buffers.touch(ClientId(principal, feedback.client))
        self._registry.record(principal, feedback)

    def _record_known(self, principal: Principal, feedback: Iterable[Feedback]) -> None:
        """Count what came along with a request."""
        for one in feedback:
            with suppress(UnknownCompletionError):
                self._registry.record(principal, one)

    def leave(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        """A client closes buffers, or leaves with all of them: what they taught goes, too."""
        gone = self.buffers.close(client, uris)
        if uris is None:
            self.scheduler.forget(client.name, client.principal.name)
        engine, is_last = self.engine, not self.buffers.has_open(client)
        if engine is not None and (gone.buffers or is_last):
            buffers = gone.buffers.values()
            closed = closed_buffers(client, gone.workspace, buffers, is_last=is_last)
            self.scheduler.run_between(lambda: _forget(engine, closed))

    def keep_only(self, principals: Collection[Principal]) -> None:
        """Whoever is none of these has left, with all clients."""
        for client in self.buffers.clients:
            if client.principal not in principals:
                self.leave(client, None)
        for principal in self._seen - set(principals):
            self._forget_principal(principal)

    def leave_silent(self, for_s: float) -> None:
        """Clients that have said nothing for so long count as gone."""
        for client in self.buffers.silent(for_s):
            self.leave(client, None)
        oldest = time.monotonic() - for_s
        for client in [one for one, at in self._bufferless.items() if at < oldest]:
            del self._bufferless[client]
            self.scheduler.forget(client.name, client.principal.name)
            self._forget_all(ClosedBuffers.of_all(client.principal.name, client.name))

    def _forget_principal(self, principal: Principal) -> None:
        """Whoever has the name next finds nothing of who had it."""
        self._seen.discard(principal)
        self.scheduler.forget_all(principal.name)
        self._registry.forget(principal)
        self.last_prompts.pop(principal, None)
        for client in [one for one in self._bufferless if one.principal == principal]:
            del self._bufferless[client]
        self._forget_all(ClosedBuffers.of_all(principal.name))

    def _forget_all(self, closed: ClosedBuffers) -> None:
        if (engine := self.engine) is not None:
            self.scheduler.run_between(lambda: _forget(engine, closed))

    def _work(self) -> None:
        try:
            self.engine = self._load(self.loaded)
        except DeviceLostError as error:
            self._lose(error)
            return
        except ForegramError as error:
            self.problem = Problem(error.code, error.told)
            _log.error("the model cannot be loaded: %s", error)
            return
        except BaseException as error:  # noqa: BLE001 - the thread would end in silence
            self.problem = Problem("internal_error", f"the model cannot be loaded: {error}")
            _log.exception("the model cannot be loaded")
            return
        info = self.engine.info
        _log.info("%s is loaded%s", info.model, f": {info.place}" if info.place else "")
        self.scheduler.max_sequences = self.engine.max_sequences
        try:
            self.engine.run(self.scheduler.admit)
        except Exception as error:  # noqa: BLE001 - who asks would wait for ever
            _log.exception("the engine's loop broke")
            self._fail(Problem("internal_error", f"the engine broke: {error}"))
            return
        self.engine.close()

    def _lose(self, error: DeviceLostError) -> None:
        """Serve nobody any more: another process may have the device, this one never again.

        The state is `stopping`: who finds it waits for the end, and starts another host.
        """
        if self.lost is not None:
            return  # completions that go on side by side each hear of it
        _log.error("the host ends: %s", error)
        self.lost = error
        self._fail(Problem(error.code, str(error)))

    def _fail(self, problem: Problem) -> None:
        """End the host; the next request starts another."""
        self.problem, self._is_stopping = problem, True
        self.scheduler.stop()
        self._end()

    def _not_ready(self) -> Problem:
        if self.problem is not None:
            return self.problem
        if self._is_stopping:
            return _STOPPING
        now = self.loaded.now
        if now is None:
            return Problem("loading", "the model is loading")
        share = f", {now.done} of {now.total}" if now.total else ""
        return Problem("loading", f"the model is loading ({now.task}{share})")


def _forget(engine: ServedEngine, closed: ClosedBuffers) -> None:
    try:
        engine.forget(closed)
    except Exception:  # noqa: BLE001 - the thread would end with it
        _log.exception("closed buffers could not be forgotten")
