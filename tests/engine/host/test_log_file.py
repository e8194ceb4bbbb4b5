"""The log of a local host: two files at most, for its user alone."""

import stat
import subprocess
import sys

import pytest

from engine.host.log_file import MAX_LOG_BYTES, LogFile


@pytest.fixture
def log_file(tmp_path):
    return LogFile(tmp_path / "host.log")


def test_the_end_of_the_log_is_read_whatever_its_bytes(log_file):
    assert log_file.read(3) == []
    log_file.path.write_bytes(b"one\ntwo\xff\nthree\n")
    assert log_file.read(2) == ["two\N{REPLACEMENT CHARACTER}", "three"]
    assert log_file.read(0) == []


def test_only_a_long_log_is_put_aside(log_file):
    log_file.rotate()
    log_file.path.write_text("short")
    log_file.rotate()
    assert log_file.read(1) == ["short"]
    log_file.path.write_text("x" * (MAX_LOG_BYTES + 1))
    log_file.rotate()
    assert log_file.read(1) == []
    assert log_file.former_path.stat().st_size == MAX_LOG_BYTES
    assert stat.S_IMODE(log_file.former_path.stat().st_mode) == 0o600


def test_a_log_is_put_aside_while_a_process_writes_to_it(log_file):
    """However long a host runs, there are never more than the two."""
    lines = "import os, sys\nfor line in sys.stdin:\n    os.write(1, line.encode() * 1000)\n"
    lines += "    os.write(2, b'.')\n"
    with (
        log_file.opened() as log,
        subprocess.Popen(
            [sys.executable, "-c", lines],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        for number in range(5):
            process.stdin.write(f"{number} {'x' * 300}\n".encode())
            process.stdin.flush()
            assert process.stderr.read(1) == b"."
            log_file.rotate()
        process.stdin.close()
    sizes = [path.stat().st_size for path in log_file.path.parent.glob("host.log*")]
    assert max(sizes) <= MAX_LOG_BYTES + 310_000
    assert len(sizes) <= 2
    assert log_file.read(1) == [f"4 {'x' * 300}"]


def test_a_log_is_its_users_alone_also_one_of_an_older_version(log_file):
    log_file.path.touch(0o644)
    with log_file.opened() as log:
        log.write(b"more\n")
    assert stat.S_IMODE(log_file.path.stat().st_mode) == 0o600
    assert log_file.read(1) == ["more"]
