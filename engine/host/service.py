"""Completions as a service: the event loop's side of the engine's thread, which never blocks it."""

import dataclasses
import os
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine import VERSION
from engine.completer import EngineInfo, EngineUsage, ServedEngine, ServedSequence
from engine.edits.edit_prompt import RefusedEditError
from engine.errors import DeviceLostError, ForegramError
from engine.host.buffers import ClientBuffers, ClientId
from engine.host.clients import Clients
from engine.host.engine_thread import STOPPING, EngineThread
from engine.host.event_relay import EventRelay
from engine.host.failures import RateLimitedLog, log_failure
from engine.host.metrics import Metrics
from engine.host.principals import WITHDRAWN
from engine.host.protocol import (
    MAX_ANSWER_TOKENS,
    MAX_TOKENS,
    PROTOCOL_VERSION,
    CompleteEvent,
    CompleteRequest,
    Failed,
    HostState,
    Status,
)
from engine.host.quotas import QuotaKeeper
from engine.host.request_builder import request_builder
from engine.job import Dropped, Job
from engine.memory import mapped_bytes, resident_bytes
from engine.progress import Progress
from engine.request import Chunk, CompletionRequest, Cost, Done, EditOutcome, FinishReason
from engine.scheduler import Scheduler


class CompletionService:
    """The engine behind a queue. Call its public methods on the event loop's thread."""

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
        self.scheduler = Scheduler(most_running=lambda principal: self.limits.of(principal).running)
        self.engine_thread = EngineThread(load, self.scheduler)
        self.clients = Clients(self.buffers, self.scheduler, self.engine_thread, self.metrics)
        self.log = RateLimitedLog()
        self.used_at = time.monotonic()  # status, health and metrics do not count as use
        self.served_since: float | None = None  # when the first completion finished

    @property
    def state(self) -> HostState:
        """The host's state."""
        return self.engine_thread.state

    @property
    def is_busy(self) -> bool:
        """Whether the model is loading, or a completion is running or waiting."""
        return self.state == "loading" or any(self.scheduler.load_of())

    def complete(self, principal: str, message: CompleteRequest) -> AsyncGenerator[CompleteEvent]:
        """Sync, then complete. Raises RefusalError and ForegramError at once."""
        client = ClientId(principal, message.client)
        for one in message.feedback:  # before anything raises: a retry does not repeat it
            self.clients.record(principal, one)
        self.buffers.sync(client, message.workspace, message.sync)
        if message.edit is not None:
            self.engine_thread.ready_engine().check_can_edit(message.edit)
        return CompletionJob(
            service=self,
            principal=principal,
            client=message.client,
            document=_document(message),
            make=request_builder(message, client, self.buffers),
            is_prefetch=message.is_prefetch,
            is_patient=message.edit is not None and bool(message.edit.instruction),
        ).events()

    def status(self, uptime_s: float, asking: ClientId) -> Status:
        """Return the host's status, limited to what the client `asking` may see."""
        principal, thread = asking.principal, self.engine_thread
        thread.load_again()
        state = self.state  # before the engine, as a thread changes both: ready needs a model
        own, info = self.gauges(principal), thread.engine and thread.engine.info
        shown = info or EngineInfo("", "", "")
        return Status(
            protocol=PROTOCOL_VERSION,
            version=VERSION,
            state=state,
            pid=os.getpid(),
            uptime_s=uptime_s,
            progress=thread.loading.now,
            problem=thread.problem,
            requested_model=self.requested_model,
            model=shown.model,
            edit_model=shown.edit_model,
            device=shown.device,
            dtype=shown.dtype,
            place=shown.place,
            num_running=own["running"],
            num_waiting=own["waiting"],
            num_clients=own["clients"],
            num_other_clients=sum(
                one.principal == principal and one != asking for one in self.buffers.clients
            ),
            num_buffers=own["buffers"],
            pool_tokens=own["pool_tokens"],
            draft_bytes=own["draft_bytes"],
            kv_bytes=own["kv_bytes"],
            mapped_bytes=own["mapped_bytes"],
            memory_mb=own["memory_bytes"] / 1e6,
            last_prompt=self.clients.last_prompt(principal),
            lost=shown.lost,
            # A named principal may not see how others use the host.
            idle_s=0.0 if principal or self.is_busy else time.monotonic() - self.used_at,
        )

    def gauges(self, principal: str = "") -> dict[str, int]:
        """Return current figures for one principal, or for all if `principal` is empty."""
        buffers, load = self.buffers.usage_of(principal), self.scheduler.load_of(principal)
        engine = self.engine_thread.engine
        usage = engine.usage_of(principal) if engine else EngineUsage()
        held = buffers.num_bytes + usage.draft_bytes + usage.kv_bytes
        return {
            "running": load.running,
            "waiting": load.waiting,
            "clients": buffers.clients,
            "buffers": buffers.buffers,
            "pool_tokens": usage.pool_tokens,
            "draft_bytes": usage.draft_bytes,
            "kv_bytes": usage.kv_bytes,
            "mapped_bytes": 0 if principal else mapped_bytes(),
            "memory_bytes": held if principal else resident_bytes(),
        }


@dataclass(slots=True, eq=False, kw_only=True)
class CompletionJob(Job):
    """A completion from admission to answer. `make` is called once, late. Raises RefusalError."""

    service: CompletionService
    make: Callable[[], CompletionRequest | None]  # on the engine's thread; None: nothing to do
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    told: EventRelay = field(default_factory=EventRelay)
    _queued_at: float = field(default_factory=time.perf_counter)
    _began_at: float = 0.0
    _engine: ServedEngine = field(init=False)

    def __post_init__(self) -> None:
        self._engine = self.service.engine_thread.ready_engine()

    async def events(self) -> AsyncGenerator[CompleteEvent]:
        """Queue the job, and yield its events up to Done or Failed. Closing it cancels the job."""
        service, num_written = self.service, 0
        client = ClientId(self.principal, self.client)
        service.clients.note(client)
        service.scheduler.submit(self)
        try:
            while isinstance(event := self._as_told(await self.told.events.get()), Chunk):
                num_written += len(event.text)  # an editor may show it before the end
                service.clients.add(self.principal, self.id, num_written)
                yield event
            if isinstance(event, Done):
                service.served_since = service.served_since or time.monotonic()
                service.clients.add_done(self.principal, event)
            yield event
        finally:
            service.scheduler.cancel(self)
            service.used_at = time.monotonic()
            if service.clients.knows(self.principal):
                service.clients.note(client)

    def _as_told(self, event: CompleteEvent) -> CompleteEvent:
        """Turn a completion that the host ended into Failed, whatever text it has."""
        if not self.service.clients.knows(self.principal):  # its token was withdrawn meanwhile
            return Failed.of(WITHDRAWN)
        if not isinstance(event, Done) or event.finish_reason is not FinishReason.CANCELLED:
            return event
        if self.service.engine_thread.is_stopping:
            return Failed.of(STOPPING)
        return _not_run(Dropped.SUPERSEDED) if self.is_superseded else event

    def begin(self) -> ServedSequence | None:
        """Begin on the engine's thread; None if there is nothing to run."""
        self._began_at = time.perf_counter()
        try:
            request = self.make()
            if request is not None:
                return self._engine.sequence(
                    self._bounded(request),
                    on_chunk=lambda chunk: self.told.tell(replace(chunk, id=self.id)),
                    is_cancelled=self.is_cancelled,
                    on_end=self._end,
                )
        except RefusedEditError as refused:
            self.told.tell(_refused(refused, self.id))
        except Exception as error:  # noqa: BLE001 - one failed completion must not stop the next
            self._fail(error)
        else:
            self.dropped(Dropped.CANCELLED)
        return None

    def dropped(self, reason: Dropped) -> None:
        """Report why the job did not run."""
        self.service.metrics.count_request(reason.value)
        self.told.tell(_not_run(reason))

    def _bounded(self, request: CompletionRequest) -> CompletionRequest:
        wanted, is_edit = request.stop.max_tokens, request.edit is not None
        if is_edit and wanted:
            wanted = MAX_ANSWER_TOKENS  # the engine bounds them by the lines
        most = MAX_ANSWER_TOKENS if request.messages or is_edit else MAX_TOKENS
        most = min(most, self.service.limits.of(self.principal).tokens)
        stop = replace(request.stop, max_tokens=min(wanted, most))
        return dataclasses.replace(request, principal=self.principal, stop=stop)

    def _end(self, sequence: ServedSequence) -> None:
        try:
            result = sequence.result()
        except Exception as error:  # noqa: BLE001 - likewise
            self._fail(error)
            return
        cost = replace(
            result.cost,
            queue_ms=1000 * (self._began_at - self._queued_at),
            prefill_ms=1000 * (time.perf_counter() - self._began_at) - result.cost.decode_ms,
        )
        self.service.metrics.count(result.finish_reason, cost, sequence.one_row_ms)
        self.told.tell(replace(result, id=self.id, cost=cost, token_ids=(), log_probs=()))

    def _fail(self, error: Exception) -> None:
        if isinstance(error, DeviceLostError):
            self.service.engine_thread.lose(error)  # before answering, so that a retry is refused
        if isinstance(error, ForegramError):
            self.service.log.failure(error)
            event = Failed(error.code, error.told, error.retry_after_s)
        else:
            log_failure(f"completion {self.id} failed", error)
            event = Failed("internal_error", f"the completion failed; the log names {self.id}")
        error.__traceback__ = None  # its frames would keep the sequence's slot memory alive
        self.service.metrics.count_request("failed")
        self.told.tell(event)


def _document(message: CompleteRequest) -> str:
    """Name the document by what is requested: an edit and a completion leave each other alone."""
    if message.edit is None:
        return message.uri
    return f"{message.uri}\0{'asked' if message.edit.instruction else 'next'}"


def _refused(refused: RefusedEditError, completion_id: str) -> Done:
    """Tell that nothing is proposed, as the document allows no prompt."""
    cost = Cost(0, 0, 0, 0, 0, 0.0, 0.0, {})
    outcome = EditOutcome(refusal=refused.code)
    return Done("", FinishReason.PREFILLED, cost, id=completion_id, edit=outcome)


def _not_run(reason: Dropped) -> Failed:
    return Failed(reason.value, f"the request was {reason.value}")
