"""Processor time of processes and their children."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.simulated.processes import cpu_s, resume, stop

# Is busy for 0.2 s, prints its id, and stays until it is told to end.
BUSY = "import os, time\nwhile time.process_time() < 0.2: pass\nprint(os.getpid(), flush=True)\ninput()"


@pytest.fixture
def parent():
    """Return a process that starts such a one, and reports its end."""
    text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\nprint(1, flush=True)\ninput()"
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.stdin.close()  # the child ends with it
        process.wait()


def test_a_child_that_is_measured_apart_does_not_count(parent):
    child = int(parent.stdout.readline())
    assert cpu_s(child) >= 0.15
    apart = cpu_s(parent.pid, without=[child])
    assert cpu_s(parent.pid) == pytest.approx(apart + cpu_s(child))


def test_a_stopped_process_takes_no_time_until_it_goes_on():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        stop([process.pid])
        while "T" not in _state(process.pid):
            time.sleep(0.001)
        before = cpu_s(process.pid)
        assert cpu_s(process.pid) == before
        resume([process.pid])
        while cpu_s(process.pid) == before:
            time.sleep(0.001)
        process.kill()


def _state(process_id):
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
