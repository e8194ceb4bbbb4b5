"""As many threads as told, or else one for each core."""

import os

from engine.model.cpu.threads import default_threads


def test_a_share_that_the_environment_tells_is_kept(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert default_threads() == 3


def test_without_one_there_are_no_more_threads_than_processors(monkeypatch):
    for told in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert 1 <= default_threads() <= (os.cpu_count() or 1)
