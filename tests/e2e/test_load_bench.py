"""`python -m tests.bench load` with a host of its own, in processes of their own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from lsp_server.host.address import HostAddress
from lsp_server.host.client import probe
from tests.support.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

START_S = 120.0  # seconds; torch is loaded, and a tokenizer trained


@contextmanager
def load(*options, folder):
    command = [sys.executable, "-m", "tests.bench", "load", "--tiny", "--json", *options]
    environ = os.environ | {"TMPDIR": str(folder), "FOREGRAM_CACHE": str(folder / "cache")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environ, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def host_process_id(folder):
    """Return the id of the benchmark's host, or None before it answers."""
    for path in folder.glob("fg-*/host.sock"):
        person = path.with_name("tokens").read_text().splitlines()[-1]
        status = asyncio.run(probe(HostAddress(person.partition(":")[2], path))).status
        if status is not None:
            return status.pid
    return None


def test_all_people_are_answered(short_folder):
    with load(
        "--people", "1,2", "--duration", "2", "--active", "1", folder=short_folder
    ) as process:
        out, errors = process.communicate(timeout=START_S)
    assert process.returncode == 0, errors
    found = json.loads(out)
    assert [run["people"] for run in found["runs"]] == [1, 2]
    for run in found["runs"]:
        assert run["answered"] > 0
        assert run["refused"] == run["failed"] == run["lost"] == 0, run["troubles"]
        assert run["first_text_ms"]["p50"] > 0
        assert run["memory_mb"] > 0
    assert not list(short_folder.glob("fg-*")), "the host's files are left"


def test_no_host_is_left_behind(short_folder):
    with load("--people", "2", "--duration", "600", folder=short_folder) as process:
        host = until(lambda: host_process_id(short_folder), "a host", limit_s=START_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(host, 0)
    assert not list(short_folder.glob("fg-*"))
