"""A task's items are counted as they are done, and the task ends whatever becomes of them."""

from threading import Event

import pytest

from engine.progress import Progress, counted, shown_if_long


class Told(Progress):
    """Remembers what it was told."""

    def __init__(self):
        self.calls = []

    def begin(self, task, total):
        self.calls.append((task, total))

    def advance(self, amount):
        self.calls.append(amount)

    def end(self):
        self.calls.append("end")


def test_items_are_counted_once_they_are_done():
    progress = Told()
    assert list(counted(progress, "reading", "ab")) == ["a", "b"]
    assert progress.calls == [("reading", 2), 1, 1, "end"]


def test_a_task_that_is_left_ends():
    progress = Told()
    items = counted(progress, "reading", "ab")
    next(items)
    del items
    assert progress.calls == [("reading", 2), "end"]


def test_what_is_quickly_done_is_not_shown():
    progress, done = Told(), Event()
    shown_if_long(progress, "compiling", done.set)
    assert done.is_set()
    assert progress.calls == []


def test_what_takes_long_is_shown_until_it_is_done():
    class Watched(Told):
        def begin(self, task, total):
            super().begin(task, total)
            seen.set()

    progress, seen = Watched(), Event()
    shown_if_long(progress, "compiling", lambda: progress.calls.append(seen.wait(60)))
    assert progress.calls == [("compiling", 0), True, "end"]


def test_what_fails_says_so():
    with pytest.raises(ZeroDivisionError):
        shown_if_long(Progress(), "compiling", lambda: 1 // 0)
