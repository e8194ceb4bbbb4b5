"""A client's piece of work for the engine, as the scheduler sees it."""

import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Dropped(StrEnum):
    """The reason for not running a waiting job."""

    SUPERSEDED = "superseded"  # by a newer job; also a prefetch while others need the time
    CANCELLED = "cancelled"
    STOPPED = "stopped"  # the scheduler was stopped


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """A piece of work, which a subclass defines.

    A newer job of its document ends it. A prefetch runs after all others and ends only prefetches.
    It ends at its client's next job or when another job would wait, and is dropped in a crowd.
    """

    client: str
    document: str
    is_prefetch: bool = False
    is_patient: bool = False  # it may take minutes, and makes way for its principal's other jobs
    principal: str = ""  # that the client belongs to
    is_superseded: bool = False  # a newer job of its document ended it while it ran
    is_paused: bool = False  # it has begun, but another job has its place
    submitted_at: float = 0.0  # by the scheduler's clock
    _cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def owner(self) -> tuple[str, str]:
        """Its client, whose name is unique only within its principal."""
        return self.principal, self.client

    def replaces(self, older: "Job") -> bool:
        """Whether it supersedes an older job; a prefetch never replaces a user's own job."""
        is_same_document = (*self.owner, self.document) == (*older.owner, older.document)
        return is_same_document and (older.is_prefetch or not self.is_prefetch)

    def begin(self) -> Any:  # noqa: ANN401 - it knows only `is_done` and `is_waiting`
        """Begin a sequence on the engine's thread; None if there is none to run. Must not raise."""
        raise NotImplementedError

    def dropped(self, reason: Dropped) -> None:
        """Tell the client, from any thread, why its job never began. Must not raise."""
        raise NotImplementedError

    def cancel(self) -> None:
        """End the run within one step."""
        self._cancelled.set()

    def is_cancelled(self) -> bool:
        """Whether the job was cancelled."""
        return self._cancelled.is_set()
