"""Chooses the sequences for the step loop: jobs of many clients in fair order, none superseded.

A job pauses while its principal fills all places and another is far behind. A patient one pauses
also for the other jobs of its own principal.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from engine.job import Dropped, Job
from engine.turns import Turns

_MOST_PAUSED = 4  # jobs; each keeps its slot and the slot's memory
# Between these waiting times, in seconds, the next key is likely to supersede a job before its text
# is there. Younger and older jobs go first; else half of a busy engine's work is wasted.
_STALE_S, _WANTED_S = 0.05, 0.4
_CROWDED = 0.5  # share of recent jobs that found all places taken; above it, prefetches are dropped
_CROWD_RATE = 0.1  # weight of the latest job in that share


class Load(NamedTuple):
    """Numbers of waiting and running jobs."""

    waiting: int
    running: int


class Scheduler:
    """A queue of jobs from any thread; `admit` is for the one thread that runs them."""

    def __init__(
        self,
        max_sequences: int = 1,  # that run together
        clock: Callable[[], float] = time.monotonic,
        most_running: Callable[[str], int] = lambda _: 2**31,  # of a principal
    ) -> None:
        self.max_sequences = max_sequences
        self._most_running = most_running
        self._clock = clock
        self._turns = Turns(clock)
        self._changed = threading.Condition()
        self._waiting: list[Job] = []
        self._running: dict[Job, Any] = {}  # None until it has begun
        self._errands: list[Callable[[], None]] = []
        self._crowd = 0.0  # share of recent jobs that found other clients' jobs in all places
        self._is_stopped = False

    def load_of(self, principal: str = "") -> Load:
        """Count the jobs of one principal, or of all if unnamed. Safe from any thread."""
        with self._changed:
            waiting, running = (
                sum(not principal or job.principal == principal for job in jobs)
                for jobs in (self._waiting, self._running)
            )
            return Load(waiting, running)

    def submit(self, job: Job) -> None:
        """Queue a job; drop or end the jobs that it supersedes."""
        job.submitted_at = self._clock()
        with self._changed:
            present = {one.principal for one in (*self._waiting, *self._running)}
            if job.principal not in present:
                self._turns.arrive(job.principal, present)
            dropped = [one for one in self._waiting if job.replaces(one)]
            self._waiting = [one for one in self._waiting if one not in dropped]
            self._note_crowd(job)
            if self._is_stopped:
                self._waiting, dropped = [], [*dropped, job]
            elif job.is_prefetch and self._crowd > _CROWDED:
                dropped.append(job)
            else:
                self._waiting.append(job)
            for running in self._running:
                running.is_superseded |= job.replaces(running)
                if running.is_superseded or self._gives_way(running, job):
                    running.cancel()
            self._changed.notify_all()
        reason = Dropped.STOPPED if self._is_stopped else Dropped.SUPERSEDED
        for one in dropped:
            one.dropped(reason)

    def cancel(self, job: Job) -> None:
        """Drop a waiting job, or end a running one within one step."""
        with self._changed:
            job.cancel()
            was_waiting = job in self._waiting
            if was_waiting:
                self._waiting.remove(job)
        if was_waiting:
            job.dropped(Dropped.CANCELLED)

    def run_between(self, errand: Callable[[], None]) -> None:
        """Run `errand` soon on the engine's thread, between two steps. It must not raise."""
        with self._changed:
            self._errands.append(errand)
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop waiting jobs, end running ones, and make `admit` return nothing."""
        with self._changed:
            self._is_stopped = True
            dropped, self._waiting = self._waiting, []
            for job in self._running:
                job.cancel()
            self._changed.notify_all()
        for job in dropped:
            job.dropped(Dropped.STOPPED)

    def forget(self, client: str, principal: str = "") -> None:
        """Forget the turns of a client that has left."""
        with self._changed:
            self._turns.forget(principal, client)

    def forget_all(self, principal: str) -> None:
        """End the jobs of a principal that has left, and forget the time it used."""
        with self._changed:
            jobs = [one for one in (*self._waiting, *self._running) if one.principal == principal]
            self._turns.forget_all(principal)
        for one in jobs:
            self.cancel(one)

    def admit(self) -> Sequence[Any]:
        """Return the sequences to step, waiting until there are some; none after `stop`."""
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
            others = [one for one in present if not one.is_prefetch and one.owner != job.owner]
            has_to_wait = len(others) >= self.max_sequences
            self._crowd += _CROWD_RATE * (has_to_wait - self._crowd)

    def _release(self) -> None:
        with self._changed:
            self._turns.charge([job.principal for job in self._running if not job.is_paused])
            self._running = {job: one for job, one in self._running.items() if not one.is_done}

    def _going_on(self) -> list[Any]:
        """Sequences of the next step; paused ones that are cancelled take part in order to end.

        All paused ones do while the others wait for memory, as these may hold it.
        """
        with self._changed:
            self._turns.begin()
            going_on = [
                one for job, one in self._running.items() if not job.is_paused or job.is_cancelled()
            ]
            is_stuck = all(one.is_waiting for one in going_on)
            return list(self._running.values()) if is_stuck else going_on

    def _wait(self) -> bool:
        """Wait for a job or an errand; False if there is none after a stop."""
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
        while (job := self._next_job()) is not None:
            self._turns.begin()
            sequence = job.begin()  # slow for a long text
            with self._changed:
                self._turns.charge([job.principal])
                if sequence is None:
                    del self._running[job]
                else:
                    self._running[job] = sequence

    def _next_job(self) -> Job | None:
        """Resume paused jobs that get a place; return the first waiting job that gets one."""
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
        """Whether any job may get a place: a quick check before each step."""
        placed = [job for job in self._running if not job.is_paused]
        if len(placed) < self.max_sequences:
            return bool(self._waiting) or len(placed) < len(self._running)
        if self._waiting and any(job.is_patient for job in placed):
            return True
        going_on = {job.principal for job in placed}
        others = {job.principal for job in (*self._waiting, *self._running)}.difference(going_on)
        return any(self._turns.is_far_behind(other, one) for one in going_on for other in others)

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
        """Find a free place, or pause another job for this one; False if neither works."""
        running = [one for one in self._running if not one.is_paused]
        if len(running) < self.max_sequences:
            return True
        num_paused = len(self._running) - len(running)
        other = self._making_way(job, running)
        if other is None or (num_paused >= _MOST_PAUSED and not job.is_paused):
            return False
        other.is_paused = True
        return True

    def _making_way(self, job: Job, running: Sequence[Job]) -> Job | None:
        """Return the running job that should pause for this one, if any should."""
        if job.is_prefetch:
            return None
        patient = [one for one in running if one.is_patient and one.principal == job.principal]
        if patient and not job.is_patient:
            return patient[0]
        last = max(running, key=lambda one: self._turns.rank(one.principal, one.client))
        return last if self._turns.is_far_behind(job.principal, last.principal) else None

    def _urgency(self, now: float, job: Job) -> tuple[bool, int, bool, int, bool, int]:
        ahead, last_turn, clients_last = self._turns.rank(job.principal, job.client)
        is_stale = not job.is_paused and _STALE_S < now - job.submitted_at < _WANTED_S
        # A principal's fresh keys go before its own stale ones, never before another principal's.
        return job.is_prefetch, ahead, not job.is_paused, last_turn, is_stale, clients_last

    def _gives_way(self, running: Job, job: Job) -> bool:
        would_wait = len(self._running) >= self.max_sequences and not job.is_prefetch
        return running.is_prefetch and (would_wait or job.owner == running.owner)
