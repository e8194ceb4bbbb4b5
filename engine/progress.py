"""Progress of long tasks. The terminal draws it; the engine knows no terminal."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_SOON_S = 1.0  # shorter work is not shown


class Progress:
    """Progress of one task after another, shown by subclasses only. Amounts are bytes."""

    def begin(self, task: str, total: int) -> None:
        """Start a task, named for the user as in `converting the model`; `total` 0 is unknown."""

    def advance(self, amount: int) -> None:
        """Count `amount` more of the task as done."""

    def end(self) -> None:
        """Finish the task, done or failed."""

    def tell(self, sentence: str) -> None:
        """Show a sentence that stays after the task."""


@contextmanager
def shown(progress: Progress, task: str, total: int) -> Iterator[None]:
    """Show the block as a task, which ends with it, done or failed."""
    progress.begin(task, total)
    try:
        yield
    finally:
        progress.end()


def shown_if_long(progress: Progress, task: str, work: Callable[[], object]) -> None:
    """Do `work` on a thread, and show it as a task once it has taken a second."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        working = beside.submit(work)
        if wait([working], _SOON_S).not_done:
            with shown(progress, task, 0):
                working.result()
        working.result()


def counted(progress: Progress, task: str, items: Sequence[T]) -> Iterator[T]:
    """Yield the items of a task, counting each as done when the next one is requested."""
    with shown(progress, task, len(items)):
        for item in items:
            yield item
            progress.advance(1)
