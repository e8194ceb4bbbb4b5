"""A task's items are counted as they are done, and the task ends whatever becomes of them."""

from engine.progress import NoProgress, counted


class Told(NoProgress):
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
