"""A step that takes a multiple of its time, around the real one."""

from types import SimpleNamespace
from typing import Any

from tests.bench import slowed


def test_a_slowed_step_takes_so_many_times_as_long_and_does_the_same(monkeypatch):
    done, waits, now = list[object](), list[float](), iter([10.0, 10.5])
    clock = SimpleNamespace(perf_counter=lambda: next(now), sleep=waits.append)
    monkeypatch.setattr(slowed, "time", clock)
    given: Any = ("runner", "embeddings", "work")
    slowed.slowed(lambda *what: done.append(what), 4)(*given)
    assert done == [given]
    assert waits == [1.5]
