"""The runtime folder: private, found by all, and it knows whether its host lives."""

import os
import re
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.host.runtime import (
    MAX_LOG_BYTES,
    HostRecord,
    LogFile,
    RuntimeFolder,
    RuntimeFolderError,
    default_runtime_folder,
)

RECORD = HostRecord(pid=1, started_at=0.0)


@pytest.fixture
def short_folder():
    """A folder whose path, unlike `tmp_path`, leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def path(short_folder):
    return short_folder / "foregram"


@pytest.fixture
def folder(path):
    return RuntimeFolder.open(path)


def test_the_sessions_folder_is_used_where_there_is_one(tmp_path):
    fallback = Path(f"/tmp/foregram-{os.getuid()}")
    assert default_runtime_folder({}) == fallback
    assert default_runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path / "gone")}) == fallback
    session = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert default_runtime_folder(session) == tmp_path / "foregram"


def test_the_folder_is_made_for_its_user_alone(path):
    RuntimeFolder.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert RuntimeFolder.open(path).path == path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.mkdir(mode=0o750), "is open to other users; run: chmod 700 {path}"),
        (lambda path: path.symlink_to(path.parent), "is a symbolic link"),
        (lambda path: path.touch(mode=0o600), "is of the wrong kind"),
    ],
)
def test_what_is_no_private_folder_is_refused(path, make, reason):
    make(path)
    with pytest.raises(RuntimeFolderError, match=reason.format(path=path)):
        RuntimeFolder.open(path)


def test_a_folder_of_somebody_else_is_refused(path, monkeypatch):
    RuntimeFolder.open(path)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(RuntimeFolderError, match="belongs to another user"):
        RuntimeFolder.open(path)


def test_a_folder_too_long_for_a_socket_is_refused(tmp_path):
    with pytest.raises(RuntimeFolderError, match=re.escape("FOREGRAM_RUNTIME names another")):
        RuntimeFolder.open(tmp_path / ("x" * 100))


def test_a_folder_that_cannot_be_made_is_refused(short_folder):
    (short_folder / "file").touch()
    with pytest.raises(RuntimeFolderError, match="cannot be made"):
        RuntimeFolder.open(short_folder / "file" / "foregram")


def test_the_token_is_made_once_whoever_asks_first(folder):
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(lambda _: folder.token(), range(32)))
    assert len(tokens) == 1
    assert len(tokens.pop()) == 43
    assert stat.S_IMODE(folder.token_path.stat().st_mode) == 0o600
    assert [path.name for path in folder.path.iterdir()] == ["token"]


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"\0" * 43, "sésame".encode()])
def test_a_damaged_token_is_made_anew(folder, content):
    folder.token()
    folder.token_path.write_bytes(content)
    assert len(folder.token()) == 43
    assert folder.token() == folder.token()
    assert stat.S_IMODE(folder.token_path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b'{"pid": ', b'{"pid": "\xff"}', b"[" * 200_000])
def test_a_damaged_record_is_none(folder, content):
    folder.record_path.write_bytes(content)
    assert folder.read_record() is None


def test_a_token_that_others_can_read_is_refused(folder):
    folder.token_path.write_text("known to all")
    folder.token_path.chmod(0o644)
    with pytest.raises(RuntimeFolderError, match="chmod 600"):
        folder.token()


def test_the_host_is_alive_as_long_as_the_process_that_inherited_the_record(folder):
    assert not folder.host_is_alive()
    with folder.claimed_record() as claim:
        process = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(claim,)
        )
        folder.write_record(RECORD)
    assert folder.host_is_alive()
    process.kill()
    process.communicate()
    assert not folder.host_is_alive()
    assert folder.read_record() == RECORD


def test_a_forgotten_host_leaves_no_trace(folder):
    folder.write_record(RECORD)
    folder.socket_path.touch()
    folder.forget_host()
    folder.forget_host()
    assert folder.read_record() is None
    assert not folder.socket_path.exists()


def test_a_token_for_which_there_is_no_room_is_a_sentence(folder):
    """A limit on the size of files stands in for a full disk."""
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from engine.host.runtime import RuntimeFolder, RuntimeFolderError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try: RuntimeFolder(Path(sys.argv[1])).token()\n"
        "except RuntimeFolderError as error: print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, folder.path], capture_output=True, text=True, check=False
    )
    assert said.stdout.startswith(f"the token {folder.token_path} cannot be written or read: ")
    assert [path.name for path in folder.path.iterdir()] == []


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
    former = log_file.path.with_name("host.log.1").stat()
    assert (former.st_size, stat.S_IMODE(former.st_mode)) == (MAX_LOG_BYTES, 0o600)


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
    assert stat.S_IMODE(log_file.path.stat().st_mode) == 0o600
    sizes = [path.stat().st_size for path in log_file.path.parent.glob("host.log*")]
    assert max(sizes) <= MAX_LOG_BYTES + 310_000
    assert len(sizes) <= 2
    assert log_file.read(1) == [f"4 {'x' * 300}"]
