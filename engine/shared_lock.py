"""Waiting for another process. Apart from the progress, as a start of a command loads that."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from engine.progress import Progress, shown


@contextmanager
def shared_lock(lock: FileLock, task: str, progress: Progress) -> Iterator[None]:
    """Hold a lock, and show waiting for another process as a task. Raises Timeout."""
    try:
        lock.acquire(timeout=0)
    except Timeout:
        with shown(progress, task, 0):
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
