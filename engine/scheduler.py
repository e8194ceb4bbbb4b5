"""Which sequences the step loop runs: jobs of many clients in fair order, and none that is needless.

It knows no model: a job begins a sequence, and runs until that is done. Where one principal's jobs
have all places and another one is far behind, one of them is paused between two steps.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

from engine.turns import Turns

_MOST_PAUSED = 4  # each keeps its slot, and so memory
# A job that has waited for so many seconds is likely to be superseded by the next key before its text
# is there; younger and older ones come first. Else half of a busy engine's work is for nothing.
_STALE_S, _WANTED_S = 0.05, 0.4
_CROWDED = 0.5  # of the latest jobs found all places taken: nothing is computed ahead any more
_CROWD_RATE = 0.1  # what the latest of them counts


class Dropped(StrEnum):
    """Why a job that waited was never run."""

    # Its document has a newer one; or it is a prefetch, and others need the time.
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    STOPPED = "stopped"  # the scheduler ends


class Running(Protocol):
    """What a job has begun."""

    is_done: bool  # it needs no more steps


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """What a client wants to be run; a subclass says what that is.

    A newer job of its document ends it, unless that one is a prefetch and this is none. A prefetch
    waits for all others; it is ended by the next job of its own client, and by any that is no
    prefetch and would have to wait. While most jobs have to wait for others, it is dropped at once.
    """

    client: str
    document: str
    is_prefetch: bool = False
    principal: str = ""  # whose client it is
    is_superseded: bool = False  # a newer one of its document ended it while it ran
    is_paused: bool = False  # it has begun, and another one has its place
    submitted_at: float = 0.0  # by the scheduler's clock
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> Running | None:
        """Begin, on the engine's thread; None where there is nothing to run. May not raise."""
        raise NotImplementedError

    def dropped(self, reason: Dropped) -> None:
        """Hear, on any thread, why it was never begun. May not raise."""
        raise NotImplementedError

    def cancel(self) -> None:
        """End the run within one step."""
        self._cancelled.set()

    def is_cancelled(self) -> bool:
        """Whether it is no longer wanted."""
        return self._cancelled.is_set()


class Load(NamedTuple):
    """How many jobs wait and run."""

    waiting: int
    running: int


class Scheduler:
    """Takes jobs from any thread; `admit` is for the one thread that runs them."""

    def __init__(
        self,
        max_sequences: int = 1,
        clock: Callable[[], float] = time.monotonic,
        most_running: Callable[[str], int] = lambda _: 2**31,
    ) -> None:
        """`max_sequences` go on side by side, of a principal `most_running`."""
        self.max_sequences = max_sequences
        self._most_running = most_running
        self._clock = clock
        self._turns = Turns(clock)
        self._changed = threading.Condition()
        self._waiting: list[Job] = []
        self._running: dict[Job, Any] = {}  # None until it has begun
        self._errands: list[Callable[[], None]] = []
        self._crowd = 0.0  # the share of the latest jobs that found others' in all places
        self._is_stopped = False

    def load_of(self, principal: str = "") -> Load:
        """The jobs of a principal; without a name, those of all. Any thread may ask."""
        with self._changed:
            waiting, running = (
                sum(not principal or job.principal == principal for job in jobs)
                for jobs in (self._waiting, self._running)
            )
            return Load(waiting, running)

    def submit(self, job: Job) -> None:
        """Queue a job; those it makes needless are dropped, or end if they run."""
        job.submitted_at = self._clock()
        with self._changed:
            present = {one.principal for one in (*self._waiting, *self._running)}
            if job.principal not in present:
                self._turns.arrive(job.principal, present)
            dropped = [one for one in self._waiting if _replaces(job, one)]
            self._waiting = [one for one in self._waiting if one not in dropped]
            self._note_crowd(job)
            if self._is_stopped:
                self._waiting, dropped = [], [*dropped, job]
            elif job.is_prefetch and self._crowd > _CROWDED:
                dropped.append(job)
            else:
                self._waiting.append(job)
            for running in self._running:
                running.is_superseded |= _replaces(job, running)
                if running.is_superseded or self._gives_way(running, job):
                    running.cancel()
            self._changed.notify_all()
        reason = Dropped.STOPPED if self._is_stopped else Dropped.SUPERSEDED
        for one in dropped:
            one.dropped(reason)

    def cancel(self, job: Job) -> None:
        """Drop a job that waits; end one that runs within one step."""
        with self._changed:
            job.cancel()
            was_waiting = job in self._waiting
            if was_waiting:
                self._waiting.remove(job)
        if was_waiting:
            job.dropped(Dropped.CANCELLED)

    def run_between(self, errand: Callable[[], None]) -> None:
        """Have the engine's thread run `errand` soon, between two steps. It may not raise."""
        with self._changed:
            self._errands.append(errand)
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop what waits, end what runs, and have `admit` return nothing."""
        with self._changed:
            self._is_stopped = True
            dropped, self._waiting = self._waiting, []
            for job in self._running:
                job.cancel()
            self._changed.notify_all()
        for job in dropped:
            job.dropped(Dropped.STOPPED)

    def forget(self, client: str, principal: str = "") -> None:
        """A client has left: when it had its last job is not remembered."""
        with self._changed:
            self._turns.forget(principal, client)

    def forget_all(self, principal: str) -> None:
        """A principal has left: its jobs end, and what it used is not remembered."""
        with self._changed:
            jobs = [one for one in (*self._waiting, *self._running) if one.principal == principal]
            self._turns.forget_all(principal)
        for one in jobs:
            self.cancel(one)

    def admit(self) -> Sequence[Any]:
        """Wait until there is something to run, and return all of it; nothing after `stop`.

        Jobs that are done leave, errands run, and waiting jobs begin.
        """
        self._release()
        while self._wait():
            self._run_errands()
            self._begin()
            if running := self._going_on():
                return running
        return []

    def _note_crowd(self, job: Job) -> None:
        if not job.is_prefetch:
            present = (*self._waiting, *self._running)
            others = [
                one for one in present if not one.is_prefetch and _client(one) != _client(job)
            ]
            has_to_wait = len(others) >= self.max_sequences
            self._crowd += _CROWD_RATE * (has_to_wait - self._crowd)

    def _release(self) -> None:
        with self._changed:
            self._turns.charge([job.principal for job in self._running if not job.is_paused])
            self._running = {job: one for job, one in self._running.items() if not one.is_done}

    def _going_on(self) -> list[Any]:
        """What takes part in the next step; a job that is cancelled does, so that it ends."""
        with self._changed:
            self._turns.begin()
            return [
                one for job, one in self._running.items() if not job.is_paused or job.is_cancelled()
            ]

    def _wait(self) -> bool:
        """Wait for a job or an errand; False where there is none, as all has stopped."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._running or self._waiting or self._errands or self._is_stopped
            )
            return bool(self._running or self._waiting or self._errands)

    def _run_errands(self) -> None:
        with self._changed:
            errands, self._errands = self._errands, []
        for errand in errands:
            errand()

    def _begin(self) -> None:
        """Begin waiting jobs, or have paused ones go on, while there is room or one makes way."""
        while (job := self._next_job()) is not None:
            self._turns.begin()
            sequence = job.begin()  # a long text takes its time
            with self._changed:
                self._turns.charge([job.principal])
                if sequence is None:
                    del self._running[job]
                else:
                    self._running[job] = sequence

    def _next_job(self) -> Job | None:
        """Give places away; return the job that is to begin, once one has a place."""
        with self._changed:
            if not self._may_begin_one():
                return None
            while (job := self._foremost()) is not None and self._has_place(job):
                if job.is_paused:
                    job.is_paused = False
                    continue
                self._waiting.remove(job)
                self._running[job] = None
                self._turns.take(job.principal, job.client)
                return job
            return None

    def _may_begin_one(self) -> bool:
        """Whether it is worth to look for the next job: that is asked before each step."""
        going_on = [job.principal for job in self._running if not job.is_paused]
        if len(going_on) < self.max_sequences:
            return bool(self._waiting) or len(going_on) < len(self._running)
        others = {job.principal for job in (*self._waiting, *self._running)}.difference(going_on)
        return any(
            self._turns.is_far_behind(other, one) for one in set(going_on) for other in others
        )

    def _foremost(self) -> Job | None:
        num_running = Counter(job.principal for job in self._running)
        wanting = [
            job
            for job in self._waiting
            if num_running[job.principal] < self._most_running(job.principal)
        ]
        wanting += [job for job in self._running if job.is_paused and not job.is_cancelled()]
        return min(wanting, key=partial(self._urgency, self._clock()), default=None)

    def _has_place(self, job: Job) -> bool:
        """Whether there is a place for it, be it that another job makes way."""
        running = [one for one in self._running if not one.is_paused]
        if len(running) < self.max_sequences:
            return True
        num_paused = len(self._running) - len(running)
        last = max(running, key=lambda one: self._turns.rank(one.principal, one.client))
        if job.is_prefetch or not self._turns.is_far_behind(job.principal, last.principal):
            return False
        if num_paused >= _MOST_PAUSED and not job.is_paused:
            return False
        last.is_paused = True
        return True

    def _urgency(self, now: float, job: Job) -> tuple[bool, int, bool, int, bool, int]:
        ahead, last_turn, clients_last = self._turns.rank(job.principal, job.client)
        is_stale = not job.is_paused and _STALE_S < now - job.submitted_at < _WANTED_S
        # A principal's own fresh keys go before its old ones, never before another's.
        return job.is_prefetch, ahead, not job.is_paused, last_turn, is_stale, clients_last

    def _gives_way(self, running: Job, job: Job) -> bool:
        would_wait = len(self._running) >= self.max_sequences and not job.is_prefetch
        return running.is_prefetch and (would_wait or _client(job) == _client(running))


def _client(job: Job) -> tuple[str, str]:
    return job.principal, job.client


def _replaces(job: Job, older: Job) -> bool:
    """Whether `older` is superseded; a prefetch never takes a user's own job away."""
    is_same_document = (*_client(job), job.document) == (*_client(older), older.document)
    return is_same_document and (older.is_prefetch or not job.is_prefetch)
