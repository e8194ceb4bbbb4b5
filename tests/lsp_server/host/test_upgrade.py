"""Editors at once get one host; a newer version replaces an idle older one, once."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import msgspec
import pytest

from engine.host.protocol import PROTOCOL_VERSION, Status
from engine.host.runtime import HostRecord
from lsp_server.cli.host_checks import check_host
from lsp_server.host import daemon
from lsp_server.host.address import HostError
from lsp_server.host.client import ProbeResult, host_status
from lsp_server.host.daemon import IDLE_S, ensure_host, is_idle, precedes, stop_host
from lsp_server.host.failures import boot_s
from tests.support.polling import until

OLD, NEW = "0.9.0", "0.10.0"
ASK = """
import asyncio, json, sys
from lsp_server.host import daemon
from lsp_server.host.client import host_status
from lsp_server.settings import Settings, load_settings
daemon.VERSION = ours = sys.argv[2]
async def main():
    settings = load_settings(environ=json.loads(sys.argv[1])).required()
    print("ready", flush=True)
    input()
    status, num_looks = None, 0
    while status is None or num_looks < 5:  # while one host gives way to another there is none
        await daemon.ensure_host(settings, [*sys.argv[3:], "--version", ours])
        status, num_looks = (await host_status(settings)).status, num_looks + 1
    print(status.version, status.pid)
asyncio.run(main())
"""


@pytest.fixture
def ensure(stub, monkeypatch):
    """What a language server of some version finds or starts."""

    def ensure(ours, *options, wanted_at=0.0):
        monkeypatch.setattr(daemon, "VERSION", ours)
        command = stub.command("--ready", "--version", ours, *options)
        asyncio.run(ensure_host(stub.settings, command, wanted_at=wanted_at))
        return asyncio.run(host_status(stub.settings)).status

    return ensure


def editors(stub, *versions):
    """Processes that look for a host at the same time, five times each."""
    environ = msgspec.json.encode(stub.environ).decode()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, environ, ours, *stub.command("--ready")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for ours in versions
    ]
    assert {process.stdout.readline() for process in processes} == {"ready\n"}
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate()[0].split() for process in processes]


def test_ten_processes_at_once_get_one_host(stub):
    assert {pid for _, pid in editors(stub, *[NEW] * 10)} == {str(pid) for pid in stub.starts}
    assert len(stub.starts) == 1


def test_an_idle_host_of_an_older_version_is_replaced_once(stub, ensure):
    assert ensure(OLD).version == OLD
    assert ensure(NEW).version == NEW
    assert ensure(NEW).pid == stub.starts[1]
    assert len(stub.starts) == 2
    assert stub.folder.read_record().failures == 0


def test_an_older_editor_never_replaces_a_newer_host(stub, ensure):
    ensure(NEW)
    assert ensure(OLD).version == NEW
    assert len(stub.starts) == 1


def test_editors_of_two_versions_at_once_agree_on_the_newer_one(stub, ensure):
    """However often each looks: nobody takes a newer host's place, so there is no turn taking."""
    ensure(OLD)
    found = editors(stub, NEW, OLD, NEW, OLD, NEW, OLD)
    assert {version for version, _ in found[::2]} == {
        NEW
    }  # an older one may have looked before any of these
    assert asyncio.run(host_status(stub.settings)).status.version == NEW
    assert len(stub.starts) == 2


def test_a_busy_host_goes_on_and_is_replaced_once_it_is_idle(stub, ensure, tmp_path):
    busy = tmp_path / "busy"
    busy.touch()
    ensure(OLD, "--busy", str(busy))
    assert ensure(NEW).version == OLD
    busy.unlink()
    assert ensure(NEW).version == NEW


@contextmanager
def other_protocol(stub, version, protocol):
    """A host that runs, and refuses this client."""
    stub.folder.token()
    command = stub.command("--ready", "--version", version, "--protocol", str(protocol))
    with stub.folder.claimed_record() as claim:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(claim,))
    with process:
        process.stdout.readline()
        stub.folder.write_record(HostRecord(process.pid, 0.0, version=version))
        yield process


def test_a_host_of_an_older_protocol_is_replaced_too(stub, ensure):
    """It answers nothing, but its record names it."""
    with other_protocol(stub, OLD, PROTOCOL_VERSION - 1) as process:
        assert ensure(NEW).version == NEW
        assert process.wait(20) == 0


def test_a_version_that_crashes_at_its_start_ends_no_host_of_an_older_protocol(stub, ensure):
    with other_protocol(stub, OLD, PROTOCOL_VERSION - 1) as process:
        record = msgspec.structs.replace(stub.folder.read_record(), crashed=NEW)
        stub.folder.write_record(record)
        with pytest.raises(HostError, match="this stub speaks"):
            ensure(NEW)
        assert process.poll() is None
        assert asyncio.run(stop_host(stub.settings))


def test_a_host_of_a_newer_protocol_stays_and_says_so(stub, ensure):
    with other_protocol(stub, NEW, PROTOCOL_VERSION + 1) as process:
        with pytest.raises(HostError, match="this stub speaks"):
            ensure(OLD)
        assert process.poll() is None
        assert asyncio.run(stop_host(stub.settings))


def test_an_older_host_that_was_killed_after_it_had_served_is_replaced_too(stub, ensure):
    ensure(OLD)
    record = msgspec.structs.replace(stub.folder.read_record(), has_served=True)
    stub.folder.write_record(record)
    os.kill(record.pid, signal.SIGKILL)
    until(lambda: not stub.folder.host_is_alive(), "the end of the host")
    assert ensure(OLD, wanted_at=boot_s()).version == OLD
    assert stub.folder.read_record().failures == 1
    assert ensure(NEW).version == NEW


def test_a_version_that_crashes_at_its_start_takes_no_place_again(stub, ensure):
    """Else it and an older editor would start their hosts in turns."""
    ensure(OLD)
    with pytest.raises(HostError, match="crashed 2 times"):
        ensure(NEW, "--crash")
    assert ensure(OLD, wanted_at=boot_s()).version == OLD
    assert ensure(NEW, "--crash").version == OLD
    assert asyncio.run(stop_host(stub.settings))
    assert ensure(NEW).version == NEW


@pytest.mark.parametrize(
    ("changes", "idle"),
    [
        ({}, True),
        ({"num_running": 1}, False),
        ({"num_waiting": 1}, False),
        ({"state": "loading"}, False),
        ({"state": "failed"}, True),
        ({"num_clients": 2}, False),
        ({"num_clients": 2, "idle_s": IDLE_S}, True),
    ],
)
def test_idle_is_a_host_that_nobody_misses(changes, idle):
    status = Status(PROTOCOL_VERSION, OLD, "ready", 1, 1.0)
    assert is_idle(msgspec.structs.replace(status, **changes)) is idle


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [
        ("0.9", "0.10", True),
        ("0.10", "0.9", False),
        ("1.0rc1", "1.0", True),
        ("1.0", "1.0.0", False),
        ("stub", "1.0", False),
        ("1.0", "", False),
    ],
)
def test_versions_have_the_order_of_releases(one, other, older):
    assert precedes(one, other) is older


@pytest.mark.parametrize("is_remote", [True, False])
def test_doctor_names_a_host_of_another_version(is_remote):
    status = Status(PROTOCOL_VERSION, "0.0.1", "ready", 1, 1.0)
    check = check_host(ProbeResult("status", status), is_remote=is_remote)
    assert "it is of version 0.0.1, and this is " in check.what
    assert ("update it where it runs" in check.what) is is_remote
    newer = msgspec.structs.replace(status, version="999")
    assert "newer than this" in check_host(ProbeResult("status", newer), is_remote=False).what
