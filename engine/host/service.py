"""Completions as a service: the event loop's side of the engine's thread.

The engine is loaded and runs on a thread of its own; the event loop hands it jobs and hears of
their events. Nothing here waits for the engine but by awaiting.
"""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from engine.host.buffers import ClientBuffers, ClientId
from engine.host.clients import CompletionRegistry, Presence, UnknownCompletionError
from engine.host.engine_thread import STOPPING, EngineThread
from engine.host.failures import FailureLog
from engine.host.held_buffer import spliced, split_at
from engine.host.metrics import Metrics
from engine.host.principals import Principal, WithdrawnError
from engine.host.protocol import (
    Chunk,
    CompleteEvent,
    CompleteRequest,
    Done,
    Failed,
    Feedback,
    HostState,
)
from engine.host.quotas import QuotaKeeper
from engine.host.request_builder import Asked, CellTexts, request_builder
from engine.host.run import Run, failed
from engine.host.served_engine import ServedEngine
from engine.progress import Progress
from engine.request import CompletionRequest, FinishReason
from engine.scheduler import Dropped, Job, Scheduler

_ENDED = FinishReason.CANCELLED.value


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
        self.registry = CompletionRegistry(self.metrics)
        self.scheduler = Scheduler(
            most_running=lambda name: self.limits.of(Principal(name)).running
        )
        self.engine_thread = EngineThread(load, self.scheduler)
        self.presence = Presence(self.buffers, self.registry, self.scheduler, self.engine_thread)
        self.used_at = time.monotonic()  # not by who reads status, health or metrics
        self._served_since: float | None = None
        self._failures = FailureLog()

    @property
    def state(self) -> HostState:
        """What the host is doing."""
        return self.engine_thread.state

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

    def complete(
        self, principal: Principal, message: CompleteRequest
    ) -> AsyncGenerator[CompleteEvent]:
        """Sync, and complete as `stream` does.

        Raises NotReadyError, VersionConflictError, InputError, QuotaError and ConfigurationError
        at once.
        """
        client = ClientId(principal, message.client)
        for one in message.feedback:  # first: it does not come a second time
            with suppress(UnknownCompletionError):
                self.registry.record(principal, one)
        self.buffers.sync(client, message.workspace, message.sync)
        held = self.buffers.get(client, message.uri, message.version)
        self.engine_thread.ready_engine()
        others = self.buffers.others(client, held)
        is_open = partial(self.buffers.holds, client)
        prefix, suffix = split_at(spliced(held.lines, message.overlay), message.position)
        get = partial(self.buffers.get, client)
        cells = CellTexts.of(message.above, message.below, get)
        make = request_builder(message, prefix, suffix, held, cells, others, is_open)
        asked = Asked(
            principal=principal,
            client=message.client,
            document=message.uri,
            make=make,
            is_prefill=message.bounds.max_tokens == 0,
            is_prefetch=message.is_prefetch,
            has_buffers=True,
        )
        return self.stream(asked)

    def stream(self, asked: Asked) -> AsyncGenerator[CompleteEvent]:
        """Queue a completion, and return its events; whoever stops to listen cancels it.

        The last event is Done or Failed. It is queued when the first one is awaited. Raises
        NotReadyError at once.
        """
        engine = self.engine_thread.ready_engine()
        make = partial(self._made, asked)
        run = Run(
            engine, self.metrics, make, self.engine_thread.lose, asked.is_prefill, self._failures
        )
        return self._events(run, asked)

    def _made(self, asked: Asked) -> CompletionRequest | None:
        """The request, in the name of who asks, and no longer than that one's may be."""
        request = asked.make()
        if request is None:
            return None
        most = self.limits.of(asked.principal).tokens
        stop = replace(request.stop, max_tokens=min(request.stop.max_tokens, most))
        return replace(request, principal=asked.principal.name, stop=stop)

    async def _events(self, run: Run, asked: Asked) -> AsyncGenerator[CompleteEvent]:
        principal = asked.principal
        self.presence.note(asked)
        job = Job(
            *(asked.client, asked.document, run.begin, run.dropped, asked.is_prefetch),
            principal=principal.name,
        )
        self.scheduler.submit(job)
        written = 0
        try:
            while True:
                event = self._as_told(await run.told.events.get(), job)
                if not self.presence.knows(principal):  # its token was taken away meanwhile
                    event = Failed("wrong_token", str(WithdrawnError()))
                if isinstance(event, Chunk):  # an editor may show it before the end
                    written += len(event.text)
                    self.registry.add(principal, event.id, written)
                if isinstance(event, Done):
                    self._served_since = self._served_since or time.monotonic()
                    self.registry.add_done(principal, event)
                yield event
                if not isinstance(event, Chunk):
                    return
        finally:
            self.scheduler.cancel(job)
            self.used_at = time.monotonic()
            if self.presence.knows(principal):
                self.presence.note(asked)

    def _as_told(self, event: CompleteEvent, job: Job) -> CompleteEvent:
        """What the host ended is no completion, whatever was written of it."""
        if not isinstance(event, Done) or event.finish_reason != _ENDED:
            return event
        if self.engine_thread.is_stopping:
            return Failed(STOPPING.code, STOPPING.message)
        return failed(Dropped.SUPERSEDED) if job.is_superseded else event

    def record(self, principal: Principal, feedback: Feedback) -> None:
        """Count what became of a completion. Raises UnknownCompletionError."""
        self.buffers.touch(ClientId(principal, feedback.client))
        self.registry.record(principal, feedback)
