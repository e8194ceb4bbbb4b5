import fcntl
import textwrap

import pytest

from tests.bench.sandbox import runs_through


def test_a_program_that_reaches_its_end_runs_through():
    assert runs_through("assert 1 + 1 == 2\n")


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 + 1 == 3",
        "def f(:\n",
        "raise SystemExit",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "import os; os.kill(os.getpid(), 9)",
        "input()",
        "text = '\ud800",
        "a = 1\0",
    ],
)
def test_a_program_that_fails_or_leaves_early_does_not(program):
    assert not runs_through(program)


@pytest.mark.parametrize(
    ("program", "limit"),
    [("while True: pass", {"cpu_s": 1}), ("import time; time.sleep(60)", {"wall_s": 0.3})],
)
def test_a_program_without_end_ends_by_its_processor_time_or_by_the_clock(program, limit):
    assert not runs_through(program, **limit)


def test_it_sees_an_empty_folder_and_no_environment():
    program = """
        import os, sys
        assert os.listdir() == ["program.py"], os.listdir()
        assert "HOME" not in os.environ
        assert sys.flags.isolated and not sys.flags.interactive
    """
    assert runs_through(textwrap.dedent(program))


def test_what_it_started_ends_with_it(tmp_path):
    """The child holds a lock until it ends, and would hold it for ten minutes."""
    lock = tmp_path / "lock"
    program = f"""
        import fcntl, os, time
        file = open({str(lock)!r}, "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fork() == 0:
            time.sleep(600)
    """
    assert runs_through(textwrap.dedent(program))
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
