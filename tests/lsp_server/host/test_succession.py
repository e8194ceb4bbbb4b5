"""An older version's host gives way to a newer one's, once, and only while nobody needs it."""

import asyncio
import os
import subprocess
import sys
from importlib.metadata import version

import msgspec
import pytest

from engine.host.protocol import PROTOCOL_VERSION, Status
from engine.host.runtime import HostRecord
from lsp_server.cli.host_checks import check_host
from lsp_server.host import daemon, succession
from lsp_server.host import search as host_search
from lsp_server.host.address import HostError
from lsp_server.host.daemon import ensure_host, stop_host
from lsp_server.host.probe import ProbeResult, host_status
from lsp_server.host.search import HostSearch
from lsp_server.host.succession import IDLE_S, Incumbent, is_older, successor_version
from tests.support.local_host import stub_host
from tests.support.polling import until

OLD, NEW = "0.9.0", "0.10.0"
ASK = """
import asyncio, json, sys
from lsp_server.host import daemon, search
from lsp_server.host.probe import host_status
from lsp_server.settings import Settings
ours = sys.argv[2]
daemon.successor_version = lambda: ours
async def main():
    settings = Settings.from_environment(json.loads(sys.argv[1]))
    print("ready", flush=True)
    input()
    status, num_looks = None, 0
    while status is None or num_looks < 5:  # while one host gives way to another there is none
        await daemon.ensure_host(settings, [*sys.argv[3:], "--version", ours])
        status, num_looks = (await host_status(settings)).status, num_looks + 1
    print(status.version)
asyncio.run(main())
"""


@pytest.fixture
def stub():
    with stub_host() as stub:
        yield stub


@pytest.fixture
def of_version(monkeypatch):
    """Be a language server of another version."""

    def be(ours):
        monkeypatch.setattr(daemon, "successor_version", lambda: ours)
        monkeypatch.setattr(host_search, "successor_version", lambda: ours)

    return be


@pytest.fixture
def ensure(stub, of_version):
    def ensure(ours, *options):
        of_version(ours)
        command = stub.command("--ready", "--version", ours, *options)
        asyncio.run(ensure_host(stub.settings, command))
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
    return [process.communicate()[0].strip() for process in processes]


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
    assert set(found[::2]) == {NEW}  # an older one may have looked before any of these
    assert asyncio.run(host_status(stub.settings)).status.version == NEW
    assert len(stub.starts) == 2


def test_editors_of_three_versions_that_all_begin_at_once_end_with_the_newest(stub):
    assert set(editors(stub, "1.0", "1.1", "1.2")) <= {"1.0", "1.1", "1.2"}
    assert editors(stub, "1.0", "1.2") == ["1.2", "1.2"]
    assert len(stub.starts) <= 3


def test_a_busy_host_goes_on_and_gives_way_later(stub, ensure, tmp_path):
    busy = tmp_path / "busy"
    busy.touch()
    ensure(OLD, "--busy", str(busy))
    assert ensure(NEW).version == OLD
    busy.unlink()
    assert ensure(NEW).version == NEW


def test_a_host_of_an_older_protocol_is_replaced_too(stub, ensure):
    """It refuses this client, so it is asked in its own protocol."""
    stub.folder.token()
    older = PROTOCOL_VERSION - 1
    command = stub.command("--ready", "--version", OLD, "--protocol", str(older))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        record = HostRecord(process.pid, 0.0, version=OLD, protocol=older)
        stub.folder.write_record(record)
        assert ensure(NEW).version == NEW
        assert process.wait(20) == 0


def test_a_host_of_a_newer_protocol_stays_and_says_so(stub, ensure):
    stub.folder.token()
    newer = PROTOCOL_VERSION + 1
    command = stub.command("--ready", "--version", NEW, "--protocol", str(newer))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        stub.folder.write_record(HostRecord(process.pid, 0.0, version=NEW, protocol=newer))
        with pytest.raises(HostError, match="this stub speaks"):
            ensure(OLD)
        assert process.poll() is None
        assert asyncio.run(stop_host(stub.settings))


def test_a_version_that_dies_at_its_start_takes_no_place_again(stub, ensure, of_version):
    """Else it and an older editor would start their hosts in turns."""
    ensure(OLD)
    of_version(NEW)
    stub.folder.write_record(
        msgspec.structs.replace(stub.folder.read_record(), unfit=NEW, failures=1)
    )
    assert ensure(NEW).version == OLD
    assert ensure("0.11").version == "0.11"


def test_what_died_before_it_served_is_noted_as_unfit(stub, of_version):
    with pytest.raises(HostError, match="crashed 2 times"):
        asyncio.run(ensure_host(stub.settings, stub.command("--crash")))
    assert stub.folder.read_record().unfit == version("foregram")
    asyncio.run(stop_host(stub.settings))
    assert stub.folder.read_record() is None


@pytest.mark.parametrize(
    ("changes", "is_idle"),
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
def test_idle_is_a_host_that_nobody_misses(changes, is_idle):
    told = {"version": OLD, "pid": 1, "state": "ready"} | changes
    assert Incumbent(**told).is_idle is is_idle
    assert Incumbent(**told).gives_way_to(NEW, None) is is_idle


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
    assert is_older(one, other) is older


def test_who_was_updated_in_place_replaces_nothing_with_what_it_cannot_speak_to(monkeypatch):
    """The process runs the code that it was started as; a host would run what is installed now."""
    monkeypatch.setattr(succession, "VERSION", "0.0.1")
    assert successor_version() == "0.0.1"
    monkeypatch.setattr(succession, "VERSION", "999")
    assert successor_version() == version("foregram")


@pytest.mark.parametrize("is_remote", [True, False])
def test_doctor_names_a_host_of_another_version(is_remote):
    status = Status(PROTOCOL_VERSION, "0.0.1", "ready", 1, 1.0)
    check = check_host(ProbeResult("status", status), is_remote=is_remote)
    assert "it is of version 0.0.1, and this is " in check.what
    assert ("update it where it runs" in check.what) is is_remote
    newer = msgspec.structs.replace(status, version="999")
    assert "newer than this" in check_host(ProbeResult("status", newer), is_remote=False).what


@pytest.mark.asyncio
async def test_a_language_server_goes_on_with_an_old_host_and_changes_over_when_it_is_idle(
    stub, of_version, monkeypatch, tmp_path
):
    monkeypatch.setattr(host_search, "_SUCCESSION_S", 0.02)
    busy = tmp_path / "busy"
    busy.touch()
    of_version(OLD)
    await ensure_host(stub.settings, stub.command("--ready", "--version", OLD, "--busy", str(busy)))
    of_version(NEW)
    seen = []
    search = HostSearch(
        lambda: ensure_host(stub.settings, stub.command("--ready", "--version", NEW)),
        lambda report: seen.append(report.status and report.status.version),
    )
    search.begin()
    assert await search.ready(20) == "ready"
    assert set(seen) == {OLD}
    busy.unlink()
    while NEW not in seen:
        await asyncio.sleep(0.01)
    assert await search.ready(20) == "ready"
    assert len(stub.starts) == 2
    await search.leave()


def test_a_host_that_is_killed_while_it_gives_way_is_replaced_all_the_same(
    stub, ensure, monkeypatch
):
    monkeypatch.setattr(daemon, "STOP_LIMIT_S", 0.3)
    ensure(OLD, "--ignore-stop", "--ignore-signals")
    assert ensure(NEW).version == NEW
    until(lambda: not _lives(stub.starts[0]), "the old host ends")


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
