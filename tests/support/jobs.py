"""Jobs of the scheduler that call a test's functions, and a completion that calls none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.completer import Calls
from engine.job import Dropped, Job

# For a completion whose text and end a test does not follow.
UNHEARD: Calls = {
    "on_chunk": lambda _: None,
    "is_cancelled": lambda: False,
    "on_end": lambda _: None,
}


@dataclass(slots=True, eq=False, kw_only=True)
class CalledJob(Job):
    """Begins with `start(is_cancelled)`; `drop` gets the reason why it never began."""

    start: Callable[[Callable[[], bool]], Any]
    drop: Callable[[Dropped], None] = lambda _: None

    def begin(self) -> Any:
        return self.start(self.is_cancelled)

    def dropped(self, reason: Dropped) -> None:
        self.drop(reason)
