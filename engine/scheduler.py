"""One thread that runs the jobs of many clients, as many side by side as share a step, fairly.

It knows no model: a job is work in turns that asks, at each of them, whether it is still wanted.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

_ENDED = object()


class Dropped(StrEnum):
    """Why a job that waited was never run."""

    SUPERSEDED = "superseded"  # its buffer has a newer one
    CANCELLED = "cancelled"
    STOPPED = "stopped"  # the scheduler ends


@dataclass(slots=True, eq=False)
class Job:
    """`turns(cancelled)` on the engine's thread, or else `dropped(reason)` on any.

    Neither may raise. A speculative job waits for all others; it is ended by the next one of its
    own client, and by any that is not speculative and would have to wait.
    """

    client: str
    buffer: str
    turns: Callable[[Callable[[], bool]], Iterator[None]]
    dropped: Callable[[Dropped], None]
    is_speculative: bool = False
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """End the run within one step."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether it is no longer wanted."""
        return self._cancelled.is_set()


class Scheduler:
    """Takes jobs from any thread; `work` is the loop of the one thread that runs them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Job] = []
        self._running: dict[Job, Iterator[None]] = {}
        self._num_lanes = 1
        self._errands: list[Callable[[], None]] = []
        self._turns: dict[str, int] = {}  # by client: the number of the turn it had last
        self._turn = 0
        self._is_stopped = False

    @property
    def num_waiting(self) -> int:
        """Jobs that have not begun."""
        with self._changed:
            return len(self._waiting)

    @property
    def num_running(self) -> int:
        """Jobs that have begun and not ended."""
        with self._changed:
            return len(self._running)

    def submit(self, job: Job) -> None:
        """Queue a job; those it makes needless are dropped, or end if they run."""
        with self._changed:
            dropped = [one for one in self._waiting if _replaces(job, one)]
            self._waiting = [one for one in self._waiting if one not in dropped]
            if self._is_stopped:
                self._waiting, dropped = [], [*dropped, job]
            else:
                self._waiting.append(job)
            for running in self._running:
                if self._interrupts(job, running):
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
        """Have the engine's thread run `errand` soon, between two turns. It may not raise."""
        with self._changed:
            self._errands.append(errand)
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop what waits, end what runs, and have `work` return."""
        with self._changed:
            self._is_stopped = True
            dropped, self._waiting = self._waiting, []
            for job in self._running:
                job.cancel()
            self._changed.notify_all()
        for job in dropped:
            job.dropped(Dropped.STOPPED)

    def forget(self, client: str) -> None:
        """A client has left: its turns are not remembered."""
        with self._changed:
            self._turns.pop(client, None)

    def work(self, num_lanes: int = 1, expect: Callable[[int], None] = lambda _: None) -> None:
        """Run jobs until `stop`, up to `num_lanes` side by side, a turn of each after the other.

        `expect` hears how many run whenever that changes.
        """
        self._num_lanes = num_lanes
        expected = 0
        while self._has_work():
            self._run_errands()
            running = self._admit()
            if running and len(running) != expected:
                expected = len(running)
                expect(expected)
            for job, turns in running:
                if next(turns, _ENDED) is _ENDED:
                    self._end(job)

    def _has_work(self) -> bool:
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

    def _admit(self) -> list[tuple[Job, Iterator[None]]]:
        """Begin waiting jobs while there is room; all that run."""
        with self._changed:
            while self._waiting and len(self._running) < self._num_lanes:
                job = min(self._waiting, key=self._urgency)
                self._waiting.remove(job)
                self._running[job] = job.turns(lambda job=job: job.is_cancelled)  # type: ignore[misc] # binds this job
                self._turn += 1
                self._turns[job.client] = self._turn
            return list(self._running.items())

    def _end(self, job: Job) -> None:
        with self._changed:
            del self._running[job]

    def _urgency(self, job: Job) -> tuple[bool, int]:
        return job.is_speculative, self._turns.get(job.client, 0)

    def _interrupts(self, job: Job, running: Job) -> bool:
        would_wait = len(self._running) >= self._num_lanes and not job.is_speculative
        return running.is_speculative and (would_wait or job.client == running.client)


def _replaces(job: Job, waiting: Job) -> bool:
    """Whether nobody needs `waiting` any more; a guess never takes a user's own job away."""
    is_same_buffer = (job.client, job.buffer) == (waiting.client, waiting.buffer)
    return is_same_buffer and (waiting.is_speculative or not job.is_speculative)
