"""Checks between here and the host: socket, token, and how long a probe takes."""

import asyncio
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import msgspec
import pytest

from engine.errors import ConfigurationError
from engine.host.protocol import PROTOCOL_VERSION, Done, Status, Timings
from lsp_server.cli import host_checks
from lsp_server.cli.host_checks import (
    check_host,
    check_latency,
    check_socket,
    check_tls,
    check_token,
)
from lsp_server.host import client as host_client
from lsp_server.host.address import HostAddress
from lsp_server.host.probe import ProbeResult, probe
from tests.support.stub_host import stub_host


@pytest.fixture
def stub():
    with stub_host() as stub:
        yield stub


@pytest.fixture
def remote(stub, tmp_path):
    """Settings of a remote host with a token file of the user's own."""
    path = tmp_path / "secret"
    path.touch(0o600)
    return msgspec.structs.replace(
        stub.settings, host_url="https://gpu.example.org", token_file=path
    )


def test_a_socket_that_is_open_to_others_names_the_command_that_helps(stub):
    path = stub.folder.socket_path
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        assert check_socket(path).what == f"{path} is open to other users, mode 0666"
        assert check_socket(path).advice == f"run: chmod 600 {path}"
        path.chmod(0o600)
        assert check_socket(path).state == "ok"


def test_what_lies_in_the_sockets_place_should_be_removed(stub):
    stub.folder.socket_path.touch()
    assert check_socket(stub.folder.socket_path).advice == f"run: rm {stub.folder.socket_path}"


def test_the_token_of_a_remote_host_is_a_secret_file_with_something_in_it(remote):
    path = remote.token_file
    with pytest.raises(ConfigurationError, match="too few for a secret"):
        check_token(remote)
    path.write_text("abracadabra abracadabra\n")
    assert check_token(remote).what == f"{path}, mode 0600"
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match="run: chmod 600"):
        check_token(remote)


def test_a_host_on_this_machine_has_left_its_token_for_its_user(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="http://127.0.0.1:8012")
    assert check_token(settings).what == "none: token_file is not set"
    with stub.folder.kept_port_token("127.0.0.1", 8012, "made by the host"):
        assert check_token(settings).what == "that of the host on this machine"


def test_a_remote_host_may_do_without_a_token(remote):
    assert check_token(msgspec.structs.replace(remote, token_file=None)).state == "ok"


@pytest.mark.parametrize(
    ("code", "advice"), [("wrong_token", "token_file"), ("", "host_url"), ("teapot", "host_url")]
)
def test_a_remote_host_cannot_be_stopped_from_here(code, advice):
    check = check_host(ProbeResult("refused", reason="no", code=code), is_remote=True)
    assert advice in check.advice
    assert "foregram stop" not in check.advice


def test_a_host_that_ends_is_asked_again_later():
    check = check_host(
        ProbeResult("status", Status(PROTOCOL_VERSION, "0", "stopping", 1, 1.0)), is_remote=False
    )
    assert check.state == "warning"


def test_a_slow_completion_is_a_warning():
    done = Done("1", "x", "end_token", 8, 8, 8, 30, 0, {}, Timings(0.0, 2500.0, 500.0))
    check = host_checks._latency(3000.0, done)
    assert check.state == "warning"
    assert check.what == "3000 ms for 8 tokens: waiting 0, prefill 2500, decode 500"


@pytest.mark.asyncio
async def test_a_completion_that_drips_is_not_waited_for_without_end(monkeypatch):
    """Each byte comes in time, and the last one never."""
    monkeypatch.setattr(host_checks, "PROBE_LIMIT_S", 0.3)
    monkeypatch.setattr(host_client, "_ANSWER_S", 0.3)
    dripping = []

    async def drip(reader, writer):
        dripping.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nx: ")
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b"a")
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1000), 0.01)
        writer.close()

    listener = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = "http://{}:{}".format(*listener.sockets[0].getsockname())
    async with listener, asyncio.timeout(10):
        check = await check_latency(HostAddress("", url=url))
        await asyncio.gather(*filter(None, dripping))
    assert (check.state, "more than 0 s" in check.what) == ("failed", True)


needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    options = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90"]
    names = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
    ]
    subprocess.run(["openssl", *options, *names], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"


@contextmanager
def listening(certificate):
    """The port of a server that does a handshake and no more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))

    class Handshake(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError):  # who does not trust us hangs up
                context.wrap_socket(self.request, server_side=True).close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handshake) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield server.server_address[1]
        server.shutdown()


def check(port, certificate=None, name="localhost"):
    return check_tls(HostAddress("", url=f"https://{name}:{port}", ca_file=certificate))


@needs_openssl
def test_a_certificate_of_ca_file_is_trusted(certificate):
    with listening(certificate) as port:
        found = check(port, certificate)
    assert (found.state, found.what) == (
        "ok",
        "the certificate is trusted, and valid for 89 more days",
    )


@needs_openssl
def test_who_asks_a_host_with_such_a_certificate_hears_of_ca_file(certificate):
    with listening(certificate) as port:
        answer = asyncio.run(probe(HostAddress("", url=f"https://localhost:{port}")))
    assert answer.kind == "absent"
    assert "self-signed certificate; ca_file may name the one that signed it" in answer.reason


@needs_openssl
def test_a_certificate_that_nobody_signed_is_not_accepted(certificate):
    with listening(certificate) as port:
        found = check(port)
    assert found.state == "failed"
    assert "self-signed certificate" in found.what
    assert "set ca_file" in found.advice


@needs_openssl
def test_a_certificate_of_another_name_is_not_accepted(certificate):
    with listening(certificate) as port:
        found = check(port, certificate, "127.0.0.1")
    assert found.state == "failed"
    assert "127.0.0.1" in found.what


def test_an_expired_certificate_should_be_renewed(monkeypatch):
    def expired(*_):
        error = ssl.SSLCertVerificationError(1, "expired")
        error.verify_message = "certificate has expired"
        raise error

    monkeypatch.setattr(host_checks, "_valid_until", expired)
    found = check(1)
    assert (found.state, found.advice) == ("failed", "renew it on the host's machine")


def test_a_certificate_that_ends_soon_is_a_warning(monkeypatch):
    monkeypatch.setattr(host_checks, "_valid_until", lambda *_: time.time() + 3.5 * 86_400)
    assert check(1).what.endswith("valid for 3 more days")
    assert check(1).state == "warning"


def test_who_does_not_listen_shows_when_the_host_is_asked():
    assert check(9).state == "warning"


def test_what_is_not_encrypted_is_fine_on_this_machine_alone():
    assert check_tls(HostAddress("", url="http://127.0.0.1:8012")).state == "ok"
    assert check_tls(HostAddress("", url="http://gpu.example.org")).state == "warning"
