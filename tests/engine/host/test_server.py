"""The host as a process: where it listens, whom it lets in, and what it leaves behind."""

import asyncio
import logging
import os
import resource
import signal
import socket
import stat
import threading
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from engine.errors import ConfigurationError, DeviceLostError
from engine.host import server as module
from engine.host.failures import RefusalError
from engine.host.options import HostOptions
from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION, Failed, Problem
from engine.host.runtime import MAX_LOG_BYTES, HostRecord, RuntimeFolder
from engine.host.server import HostServer, port_listener
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually
from tests.support.ports import free_port
from tests.support.running_host import ask, buffer, running_host
from tests.support.served_host import secret_file


class LosingEngine(HeldEngine):
    """Loses its device at the first step that it is permitted."""

    def completing(self, *_, **__):
        self.began.release()
        self.permits.acquire()
        raise DeviceLostError("the device cuda:0 is lost")


@asynccontextmanager
async def serving(options: HostOptions):
    """A host that listens, and a client of it."""
    async with running_host(None, HeldEngine(), options=options) as host:
        yield host.client


TOKEN = "a token of a test"


async def test_a_completion_over_tls_and_its_own_certificate(certificate):
    cert, key = certificate
    options = HostOptions(port=free_port(), token="secret", tls_cert=cert, tls_key=key)
    async with serving(options) as client:
        response = await client.post("/v1/status")
        assert response.status_code == 405
        assert response.json()["code"] == "wrong_method"
        assert "GET" in response.headers["allow"].split(", ")
        assert (await client.get("/v1/status")).json()["state"] == "ready"
        wrong = {"authorization": "Bearer guess"}
        assert (await client.get("/v1/status", headers=wrong)).status_code == 401
        async with httpx2.AsyncClient(base_url=client.base_url) as stranger:
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await stranger.get("/health")


async def test_over_tcp_a_foreign_name_is_refused(certificate):
    async with serving(HostOptions(port=free_port(), token=TOKEN)) as client:
        foreign = await client.get("/v1/status", headers={"host": "evil.example"})
        assert (foreign.status_code, foreign.json()["code"]) == (403, "wrong_host")
        assert (await client.get("/v1/status")).status_code == 200


async def test_the_token_of_a_port_lies_where_its_user_alone_finds_it(tmp_path, caplog):
    caplog.set_level(logging.INFO, "foregram.host")
    folder = RuntimeFolder.open(tmp_path / "run")
    port = free_port()
    async with serving(HostOptions(port=port, token=TOKEN, token_folder=folder)):
        assert folder.port_token("127.0.0.1", port) == TOKEN
        path = tmp_path / "run" / f"token-127.0.0.1-{port}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert any(str(path) in message for message in caplog.messages)
    assert folder.port_token("127.0.0.1", port) is None
    assert TOKEN not in caplog.text


async def test_the_token_of_a_port_comes_back_where_it_was_removed(tmp_path, monkeypatch):
    """Cleaners of /tmp remove old files, and hosts on a port live long."""
    monkeypatch.setattr("engine.host.server._WATCH_S", 0.01)
    folder = RuntimeFolder.open(tmp_path / "run")
    port = free_port()
    async with serving(HostOptions(port=port, token=TOKEN, token_folder=folder)):
        (tmp_path / "run" / f"token-127.0.0.1-{port}").unlink()
        await eventually(lambda: folder.port_token("127.0.0.1", port) == TOKEN)
    assert folder.port_token("127.0.0.1", port) is None


async def test_a_client_on_a_private_socket_may_stop_its_host(tmp_path):
    async with serving(HostOptions(socket=tmp_path / "host.sock")) as client:
        assert (await client.post("/v1/stop")).status_code == 202


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize("path", ["/v1/stop", "/v1/stop/"])
async def test_no_client_can_stop_a_host_on_a_port(path, address):
    """Whoever has a token of it may be one of many, on this machine as well."""
    options = HostOptions(address=address, port=free_port(), token=TOKEN, is_insecure=True)
    async with serving(options) as client:
        response = await client.post(path)
        assert (response.status_code, response.json()["code"]) == (403, "not_allowed")
        assert (await client.get("/v1/status")).status_code == 200


@pytest.mark.parametrize(
    ("allowed", "connections"), [(1024, 824), (100, 32), (resource.RLIM_INFINITY, None)]
)
def test_connections_leave_some_descriptors_for_files(monkeypatch, allowed, connections):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    assert module._most_connections() == connections


async def test_a_tls_handshake_that_does_not_end_is_waited_for_no_longer(certificate, monkeypatch):
    monkeypatch.setattr(module, "_HANDSHAKE_S", 0.3)
    cert, key = certificate
    options = HostOptions(port=free_port(), token=TOKEN, tls_cert=cert, tls_key=key)
    async with serving(options) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", options.port)
        writer.write(b"\x16\x03\x01")
        with suppress(ConnectionError):
            assert await reader.read() == b""
        assert (await client.get("/v1/status")).status_code == 200
        writer.close()


def test_an_answers_body_does_not_wait_for_the_acknowledgement_of_its_head():
    options = HostOptions(port=free_port(), token=TOKEN)
    with (
        port_listener(options) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def attempted(options: HostOptions) -> None:
    await HostServer(CompletionService(lambda _: HeldEngine()), options).serve()


async def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}: .* use"):
            await attempted(HostOptions(port=port, token=TOKEN))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing/host.sock", "No such file or directory"), ("x" * 200, "AF_UNIX path too long")],
)
async def test_a_socket_that_cannot_be_made_is_named_with_the_reason(tmp_path, name, reason):
    options = HostOptions(socket=tmp_path / name)
    with pytest.raises(ConfigurationError, match=f"cannot listen on {tmp_path / name}: {reason}"):
        await attempted(options)


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    precious = tmp_path / "notes.txt"
    precious.write_text("years of work")
    with pytest.raises(ConfigurationError, match=f"cannot listen on {precious}"):
        await attempted(HostOptions(socket=precious))
    assert precious.read_text() == "years of work"


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_has_the_engine_keep_what_it_learned(tmp_path, ending):
    before = signal.getsignal(ending)
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        os.kill(os.getpid(), ending)
        await eventually(lambda: host.is_stopping)
    assert engine.is_closed
    assert signal.getsignal(ending) is before


async def test_a_hangup_has_the_token_file_read_again_and_a_broken_one_keeps_the_old(
    tmp_path, caplog
):
    caplog.set_level(logging.INFO, "foregram.host")
    path = tmp_path / "tokens"
    path.touch(0o600)
    former, newer = "a token that was good", "a token that is better"

    async def hung_up(content, message):
        path.write_text(content)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: any(message in one for one in caplog.messages))

    path.write_text(f"ada:{former}")
    async with serving(HostOptions(port=free_port(), token_file=path)) as client:

        async def status(token):
            bearer = {"authorization": f"Bearer {token}"}
            return (await client.get("/v1/status", headers=bearer)).status_code

        assert (await status(former), await status(newer)) == (200, 401)
        await hung_up("ada:short", "the tokens stay as they were: ")
        assert (await status(former), await status(newer)) == (200, 401)
        await hung_up(f"ada:{newer}", "the token file was read again")
        assert (await status(former), await status(newer)) == (401, 200)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    assert former not in caplog.text


async def test_a_host_on_a_port_reads_its_token_file_upon_a_hangup_only(tmp_path, monkeypatch):
    """A file that is half saved would end requests of those whose lines are not there yet."""
    rounds = []
    monkeypatch.setattr("engine.host.server._WATCH_S", 0.001)
    monkeypatch.setattr("engine.host.server.return_free_memory", lambda: rounds.append(1))
    path = secret_file(tmp_path / "tokens", TOKEN)
    async with serving(HostOptions(port=free_port(), token_file=path)) as client:
        path.write_text("another token of a test")
        former = len(rounds)
        await eventually(lambda: len(rounds) >= former + 5)
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/v1/status", headers=bearer)).status_code == 200


async def test_a_hangup_does_not_end_a_host_that_saves_what_it_learned(tmp_path):
    handlers = []

    class Saving(HeldEngine):
        def close(self):
            handlers.append(signal.getsignal(signal.SIGHUP))

    path = secret_file(tmp_path / "tokens", TOKEN)
    async with running_host(tmp_path, Saving(), token=TOKEN, token_file=path):
        pass
    assert len(handlers) == 1
    assert handlers[0] is not signal.SIG_DFL


async def test_a_lost_device_ends_the_host_and_all_who_asked_hear_why(tmp_path):
    engine, lost = LosingEngine(), ("device_lost", "the device cuda:0 is lost")

    async def serve():
        async with running_host(tmp_path, engine) as host:
            running = asyncio.create_task(host.answered(ask(buffer("x"))))
            await asyncio.to_thread(engine.began.acquire)
            other = ask(buffer("y"), client="two")
            waiting = asyncio.create_task(host.answered(other))
            await eventually(lambda: host.service.scheduler.load_of().waiting)
            engine.permits.release()
            assert await running == [Failed(*lost)]
            assert await waiting == [Failed("stopped", "the request was stopped")]
            assert host.service.engine_thread.problem == Problem(*lost)
            assert host.service.state == "stopping"
            assert host.is_stopping

    with pytest.raises(DeviceLostError):
        await serve()
    assert engine.is_closed
    assert not (tmp_path / "host.sock").exists()


async def test_who_asks_a_host_that_has_lost_its_device_is_refused_with_the_reason(tmp_path):
    engine = LosingEngine()
    engine.permits.release()

    async def serve():
        async with running_host(tmp_path, engine) as host:
            await host.answered(ask(buffer("x")))
            with pytest.raises(RefusalError, match="the device cuda:0 is lost"):
                host.service.complete("", ask(buffer("x")))  # as the route does, while there is one

    with pytest.raises(DeviceLostError):
        await serve()


async def test_who_is_not_let_in_does_not_keep_an_idle_host_awake(tmp_path):
    async with running_host(tmp_path, HeldEngine(), token="right", idle_exit_s=0.1) as host:
        wrong = {"authorization": "Bearer wrong"}
        with suppress(httpx2.TransportError):  # it has gone, as it should
            while not host.is_stopping:
                await host.client.post("/v1/buffers", headers=wrong)
        assert host.is_stopping


async def test_a_host_that_works_or_has_work_waiting_is_not_idle(tmp_path):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine, idle_exit_s=0.1) as host:
        events = host.complete(ask(buffer("x")))
        running = asyncio.create_task(anext(events))
        await asyncio.to_thread(engine.began.acquire)
        await asyncio.sleep(0.4)
        assert not host.is_stopping
        engine.is_held = False
        await running
        await events.aclose()
        await eventually(lambda: host.is_stopping)


async def test_a_host_that_loads_its_model_is_not_idle(tmp_path):
    gate = threading.Event()

    def load(_):
        gate.wait(20)
        return HeldEngine()

    async with running_host(tmp_path, None, load=load, idle_exit_s=0.1) as host:
        await asyncio.sleep(0.4)
        assert not host.is_stopping
        gate.set()
        await eventually(lambda: host.is_stopping)


async def test_a_private_host_takes_the_token_that_lies_where_its_own_was_removed(
    tmp_path, monkeypatch
):
    """Cleaners of /tmp remove old files, and the next client makes another token."""
    monkeypatch.setattr("engine.host.server._WATCH_S", 0.01)
    folder = RuntimeFolder.open(tmp_path / "run")
    former = folder.token()
    async with running_host(
        folder.path, HeldEngine(), token=former, token_file=folder.token_path
    ) as host:
        folder.token_path.unlink()
        headers = {"authorization": f"Bearer {folder.token()}"}
        while (await host.client.get("/v1/status", headers=headers)).status_code == 401:
            await asyncio.sleep(0.005)
        assert (await host.client.get("/v1/status")).status_code == 401
    assert folder.token() != former


async def test_nobody_names_the_address_that_the_log_has(caplog):
    options = HostOptions(port=free_port(), token=TOKEN)
    forged = {"x-forwarded-for": "a name\x9b31m 6.6.6.6", "authorization": "Bearer wrong"}
    async with serving(options) as client:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in forged.items()]
        assert (await client.get("/v1/status", headers=raw)).status_code == 401
    (line,) = [one for one in caplog.messages if "was refused" in one]
    assert line.startswith("a request from 127.0.0.1 was refused")


async def test_silent_clients_and_their_jobs_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.host.server._WATCH_S", 0.01)
    async with running_host(tmp_path, HeldEngine()) as host:
        async for _ in host.complete(ask(buffer("x"))):
            pass
        monkeypatch.setattr("engine.host.clients._SILENT_S", 0.0)
        await eventually(lambda: not host.service.buffers.usage_of().clients)
        assert not host.service.scheduler._turns._accounts[""].last_turns


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_host_that_nobody_finds_any_more_ends(tmp_path, monkeypatch, caplog, is_replaced):
    """Cleaners of /tmp remove old files; else a second host would run beside the first."""
    monkeypatch.setattr("engine.host.server._WATCH_S", 0.01)
    async with running_host(tmp_path, HeldEngine()) as host:
        (tmp_path / "host.sock").unlink()
        if is_replaced:
            (tmp_path / "host.sock").touch()
        await eventually(lambda: host.is_stopping)
    assert "its socket was removed" in caplog.text
    assert (tmp_path / "host.sock").exists() is is_replaced


@pytest.mark.parametrize("is_rotated", [True, False])
async def test_a_host_has_served_once_its_first_completion_is_old(
    tmp_path, monkeypatch, is_rotated
):
    """To be loaded is not to serve: the first step of a model may be what ends the host."""
    monkeypatch.setattr("engine.host.server._WATCH_S", 0.01)
    monkeypatch.setattr("engine.host.server._SERVED_S", 0.05)
    folder = RuntimeFolder.open(tmp_path / "run")
    folder.write_record(HostRecord(1, started_at=3.0, failures=4))
    folder.log.path.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    if not is_rotated:
        (folder.path / "host.log.1").mkdir()
    async with running_host(tmp_path, HeldEngine(), record=folder) as host:
        # It may run for weeks, and prints to its log.
        await eventually(lambda: not (is_rotated and folder.log.path.stat().st_size))
        assert not folder.read_record().has_served
        await host.answered(ask(buffer("x")))
        await eventually(lambda: folder.read_record().has_served)
    assert folder.read_record() == HostRecord(1, started_at=3.0, failures=4, has_served=True)


async def test_what_outlasts_the_drain_ends_as_the_host_does_and_leaves_no_stack_in_the_log(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(module, "_JOBS_END_S", 0.0)
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine) as host:

        async def answer():
            return [event async for event in host.complete(ask(buffer("x")))]

        waiting = asyncio.create_task(answer())
        await asyncio.to_thread(engine.began.acquire)
        host.server.stop()
        assert await waiting == [Failed("stopping", "the host is stopping")]
    assert [one for one in caplog.records if one.levelno > logging.INFO] == []


@pytest.mark.parametrize("path", ["/v1/complete", "/v1/completions"])
async def test_a_body_that_is_still_on_its_way_does_not_outlast_the_drain(
    monkeypatch, caplog, path
):
    """Its connection ends; there is no stack in the log."""
    monkeypatch.setattr(module, "_JOBS_END_S", 0.0)
    options = HostOptions(port=free_port(), token=TOKEN)
    async with serving(options):
        reader, writer = await asyncio.open_connection(options.address, options.port)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"{PROTOCOL_HEADER}: {PROTOCOL_VERSION}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 500\r\nExpect: 100-continue\r\n\r\n".encode())
        assert b"100" in await reader.readline()  # the body is waited for
        writer.write(b"{")
    with suppress(ConnectionResetError):
        assert not (await reader.read()).strip()
    writer.close()
    warned = [one.getMessage() for one in caplog.records if one.levelno > logging.INFO]
    assert warned == ["a connection from 127.0.0.1 was ended: the host stops"]


async def test_behind_a_proxy_a_host_of_a_token_file_goes_by_any_name(tmp_path):
    file = secret_file(tmp_path / "tokens", TOKEN)
    async with serving(HostOptions(port=free_port(), token=None, token_file=file)) as client:
        headers = {"host": "code.example", "authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/v1/status", headers=headers)).status_code == 200
        assert (await client.get("/v1/status", headers={"host": "code.example"})).status_code == 401
