"""One host for all who ask, whatever happened to the one before; a stub stands in for it."""

import asyncio
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from argparse import Namespace

import msgspec
import pytest
from msgspec.structs import replace

from engine.host.protocol import PROTOCOL_VERSION
from lsp_server.cli.arguments import build_parser
from lsp_server.cli.doctor import examine_host
from lsp_server.cli.host_commands import show_status
from lsp_server.host import daemon
from lsp_server.host.address import HostError, host_address
from lsp_server.host.client import host_status
from lsp_server.host.daemon import ensure_host, serve_command, stop_host
from lsp_server.host.failures import boot_s, note_signal
from tests.support.polling import until


class Teapot(socketserver.StreamRequestHandler):
    """An HTTP server, but not ours."""

    def handle(self):
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n")


def ensure(stub, *options):
    return asyncio.run(ensure_host(stub.settings, stub.command(*options)))


def answer(stub):
    return asyncio.run(host_status(stub.settings))


def test_a_host_does_not_stand_in_the_folder_of_who_started_it(stub, tmp_path, monkeypatch):
    """An editor is started in a repository, whose files a relative path would mean."""
    monkeypatch.chdir(tmp_path)
    ensure(stub)
    assert stub.directories == ["/"]


def test_a_host_that_runs_is_found(stub):
    address = ensure(stub)
    assert ensure(stub) == address == host_address(stub.settings)
    assert len(stub.starts) == 1
    status = answer(stub).status
    assert (status.protocol, status.state, status.pid) == (
        PROTOCOL_VERSION,
        "loading",
        *stub.starts,
    )


def test_a_host_that_could_not_load_its_model_is_replaced_for_a_person_alone(stub):
    """A restart, a reload and a changed setting are such wishes; a search that goes on is none."""
    ensure(stub, "--failed")
    ensure(stub)
    assert answer(stub).status.state == "failed"
    wish = boot_s()
    for _ in range(2):
        asyncio.run(ensure_host(stub.settings, stub.command(), wanted_at=wish))
    assert answer(stub).status.state == "loading"
    assert (len(stub.starts), stub.folder.read_record().failures) == (2, 0)


def test_a_stale_socket_is_no_obstacle(stub):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stub.folder.socket_path))
    ensure(stub)
    assert answer(stub).kind == "status"


def test_a_host_that_crashes_at_its_start_is_tried_twice_and_then_reported(stub):
    with pytest.raises(HostError) as error:
        ensure(stub, "--crash")
    assert "crashed 2 times in a row: " in str(error.value)
    assert "it is restarted after a minute" in str(error.value)
    assert "the stub has no model" in str(error.value)
    assert str(stub.folder.log.path) in str(error.value)
    assert len(stub.starts) == 2


def killed(stub, times=1):
    """Hosts that are killed while they load, as by a system out of memory."""
    for _ in range(times):
        ensure(stub)
        os.kill(answer(stub).status.pid, signal.SIGKILL)
        until(lambda: not stub.folder.host_is_alive(), lambda: "the host lives")


def later(stub, seconds):
    """As if the last failure were so much longer ago."""
    record = stub.folder.read_record()
    stub.folder.write_record(replace(record, failed_at=record.failed_at - seconds))


def test_a_host_that_is_killed_again_and_again_is_started_after_ever_longer_pauses(stub):
    """However long each of them loaded: their starts are as old as can be."""
    killed(stub, times=2)
    for num_starts, pause_s in ((2, 60), (3, 300), (4, 3600), (5, 3600)):
        stub.folder.write_record(replace(stub.folder.read_record(), started_at=0.0))
        for _ in range(3):
            with pytest.raises(HostError, match=f"crashed {num_starts} times in a row"):
                ensure(stub)
        later(stub, pause_s - 5)
        with pytest.raises(HostError):
            ensure(stub)
        assert len(stub.starts) == num_starts
        later(stub, 5)
        killed(stub)


def test_the_pause_is_not_fooled_by_the_clock_and_ends_with_a_start_of_the_machine(
    stub, monkeypatch
):
    killed(stub, times=2)
    for clock in (0.0, time.time() + 1e9):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        with pytest.raises(HostError):
            ensure(stub)
    assert len(stub.starts) == 2
    later(stub, -1e9)
    ensure(stub)
    assert len(stub.starts) == 3


def test_a_host_that_has_served_for_a_while_begins_the_count_anew(stub):
    for _ in range(4):
        killed(stub)
        stub.folder.write_record(replace(stub.folder.read_record(), has_served=True))
    ensure(stub)
    assert len(stub.starts) == 5
    assert stub.folder.read_record().failures == 1


def test_a_person_who_asks_gets_one_more_start_at_once(stub):
    killed(stub, times=2)
    with pytest.raises(HostError):
        ensure(stub)
    wanted_at = boot_s()
    asyncio.run(ensure_host(stub.settings, stub.command(), wanted_at=wanted_at))
    os.kill(answer(stub).status.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(HostError, match="3 times in a row"):
            asyncio.run(ensure_host(stub.settings, stub.command(), wanted_at=wanted_at))
    assert len(stub.starts) == 3


def test_a_host_that_was_killed_cannot_say_so_and_its_log_does(stub):
    with pytest.raises(HostError, match="killed by SIGKILL, as systems do when memory runs out"):
        ensure(stub, "--kill")


def test_of_a_host_whose_model_was_cut_short_the_log_says_that(stub):
    """Reading a mapped page behind the end of its file kills a process."""
    reads = "f.truncate(9000); held = mmap.mmap(f.fileno(), 0); f.truncate(0); held[0]"
    code = f"import mmap, tempfile; f = tempfile.TemporaryFile(); {reads}"
    note_signal(stub.folder, subprocess.Popen([sys.executable, "-c", code]))
    (line,) = stub.folder.log.read(1)
    assert line == "the host was killed by SIGBUS, as where its model's file is cut short"


def test_status_says_why_there_is_no_host(stub, capsys):
    killed(stub)
    assert show_status(Namespace(json=False), stub.settings) == 1
    assert "the model's process crashed" in capsys.readouterr().err
    [found] = asyncio.run(examine_host(stub.settings, start=False))
    assert "the model's process crashed" in found.what


def test_stopping_forgets_the_crashes(stub):
    with pytest.raises(HostError):
        ensure(stub, "--crash")
    assert not asyncio.run(stop_host(stub.settings))
    ensure(stub)
    assert answer(stub).kind == "status"


def test_a_host_that_is_stopping_is_waited_for_and_replaced(stub):
    stub.folder.token()
    with subprocess.Popen(stub.command("--stopping"), stdout=subprocess.PIPE) as stopping:
        assert stopping.stdout.readline() == b"listening\n"
        ensure(stub)
    assert [answer(stub).status.pid] == stub.starts[1:]


def test_a_process_that_never_answers_is_reported(stub, monkeypatch):
    monkeypatch.setattr(daemon, "START_LIMIT_S", 0.2)
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(HostError, match="has not answered for 0 s"):
        asyncio.run(ensure_host(stub.settings, sleeper))
    monkeypatch.setattr(daemon, "STOP_LIMIT_S", 0.5)
    assert asyncio.run(stop_host(stub.settings))
    assert not stub.folder.host_is_alive()


def test_a_foreign_listener_is_neither_used_nor_replaced(stub, monkeypatch):
    monkeypatch.setattr(daemon, "STOP_LIMIT_S", 0.1)
    with socketserver.ThreadingUnixStreamServer(str(stub.folder.socket_path), Teapot) as server:
        threading.Thread(target=server.serve_forever).start()
        with pytest.raises(HostError, match="is not a completion host of this version"):
            ensure(stub)
        with pytest.raises(HostError, match=r"what listens on .* does not end"):
            asyncio.run(stop_host(stub.settings))
        server.shutdown()
    assert stub.starts == []


def test_a_command_that_is_not_there_is_reported(stub):
    with pytest.raises(HostError, match="/no/python: No such file"):
        asyncio.run(ensure_host(stub.settings, ["/no/python"]))


def test_a_host_with_another_token_is_reported(stub):
    ensure(stub)
    pid = answer(stub).status.pid
    stub.folder.token_path.write_text("another")
    assert answer(stub).code == "wrong_token"
    with pytest.raises(HostError, match="refuses: the request does not carry this host's token"):
        ensure(stub)
    os.kill(pid, signal.SIGKILL)


def test_waiting_for_a_host_leaves_the_event_loop_free(stub):
    async def count_turns():
        turns, task = 0, asyncio.create_task(ensure_host(stub.settings, stub.command()))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(count_turns()) > 100


def test_stopping_waits_until_the_process_is_gone(stub):
    ensure(stub)
    assert asyncio.run(stop_host(stub.settings))
    assert not stub.folder.host_is_alive()
    assert not stub.folder.socket_path.exists()
    assert stub.folder.read_record() is None


def test_a_host_whose_place_another_one_takes_at_once_was_stopped(stub):
    """An editor with a request that still stands does not wait for who stops the host."""
    ensure(stub)

    async def stop_while_an_editor_asks():
        stopping = asyncio.create_task(stop_host(stub.settings))
        while len(stub.starts) < 2:
            await ensure_host(stub.settings, stub.command())
        assert await asyncio.wait_for(stopping, 10)

    asyncio.run(stop_while_an_editor_asks())
    assert stub.folder.host_is_alive()


@pytest.mark.parametrize(
    ("deaf_to", "signals"),
    [
        (["--ignore-stop"], ["SIGTERM"]),
        (["--ignore-stop", "--ignore-signals"], ["SIGTERM", "SIGKILL"]),
    ],
)
def test_a_host_that_does_not_listen_to_reason_is_ended(stub, monkeypatch, deaf_to, signals):
    monkeypatch.setattr(daemon, "STOP_LIMIT_S", 0.4)
    ensure(stub, *deaf_to)
    told: list[str] = []
    assert asyncio.run(stop_host(stub.settings, told.append))
    assert [sentence.split()[-1] for sentence in told] == signals
    assert f"process {stub.starts[0]}" in told[0]
    assert not stub.folder.host_is_alive()


def test_what_the_host_prints_is_in_the_log(stub):
    ensure(stub)
    assert "GET /v1/status" in stub.folder.log.read(1)[0]


def test_a_remote_host_is_neither_started_nor_stopped(stub, tmp_path):
    token_file = tmp_path / "token"
    token_file.write_text("a secret of a test\n")
    token_file.chmod(0o600)
    settings = msgspec.structs.replace(
        stub.settings, host_url="http://127.0.0.1:9", token_file=token_file
    )
    address = asyncio.run(ensure_host(settings))
    assert (address.token, address.url, address.socket_path) == (
        "a secret of a test",
        settings.host_url,
        None,
    )
    with pytest.raises(HostError, match="only be stopped where it runs"):
        asyncio.run(stop_host(settings))


def test_the_host_gets_what_the_settings_say(stub):
    settings = msgspec.structs.replace(
        stub.settings, model="1.5b", device="cuda:1", dtype="fp8", kv_budget_mb=512
    )
    settings = msgspec.structs.replace(settings, threads=3, prompt_tokens=900, idle_exit_s=60)
    command = serve_command(settings, stub.folder)
    assert command[:5] == [sys.executable, "-P", "-m", "lsp_server", "serve"]
    assert command[5:] == [
        *("--socket", str(stub.folder.socket_path)),
        *("--token-file", str(stub.folder.token_path)),
        *("--record", str(stub.folder.record_path)),
        *("--idle-exit", "60", "--model", "1.5b", "--device", "cuda:1"),
        *("--dtype", "fp8", "--kv-budget", "512"),
        *("--threads", "3", "--prompt-tokens", "900"),
        *("--cache-folder", str(settings.cache_folder)),
    ]
    build_parser().parse_args(command[4:])
    plain = serve_command(msgspec.structs.replace(stub.settings, idle_exit_s=0), stub.folder)
    options = {"--idle-exit", "--threads", "--prompt-tokens", "--kv-budget", "--model"}
    assert not options & set(plain)


def test_a_host_that_ended_well_has_not_crashed(stub):
    ensure(stub)
    pid = answer(stub).status.pid
    stub.folder.record_path.write_bytes(b"")  # as `serve --record` does in the end
    assert stub.folder.host_is_alive()
    os.kill(pid, signal.SIGTERM)
    while stub.folder.host_is_alive():
        time.sleep(0.005)
    ensure(stub)
    assert [answer(stub).status.pid] == stub.starts[1:]
    assert stub.folder.read_record().failures == 0
