"""Checks of the host: its token, what it says of itself, and how long a probe takes."""

import asyncio
import shutil
import ssl
import subprocess
from contextlib import suppress

import msgspec
import pytest

from engine.errors import ConfigurationError
from lsp_server.cli import host_checks
from lsp_server.cli.host_checks import (
    check_host,
    check_latency,
    check_tls,
    check_token,
)
from lsp_server.host import client as host_client
from lsp_server.host.address import HostAddress
from lsp_server.host.client import ProbeResult, probe
from tests.support.running_host import listening


@pytest.fixture
def remote(stub, tmp_path):
    """Settings of a remote host with a token file of the user's own."""
    path = tmp_path / "secret"
    path.touch(0o600)
    return msgspec.structs.replace(
        stub.settings, host_url="https://gpu.example.org", token_file=path
    )


def test_the_token_of_a_remote_host_is_a_secret_file_with_something_in_it(remote):
    path = remote.token_file
    with pytest.raises(ConfigurationError, match="too few for a secret"):
        check_token(remote)
    path.write_text("abracadabra abracadabra\n")
    assert check_token(remote).what == f"{path}, open only to you"
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match="run: chmod 600"):
        check_token(remote)


def test_a_host_on_this_machine_has_left_its_token_for_its_user(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="http://127.0.0.1:8012")
    assert check_token(settings).what == "none: token_file is not set"
    stub.folder.keep_port_token("127.0.0.1", 8012, "made by the host")
    assert check_token(settings).what == "that of the host on this machine"


@pytest.mark.parametrize(
    ("code", "advice"), [("wrong_token", "token_file"), ("", "host_url"), ("teapot", "host_url")]
)
def test_a_remote_host_cannot_be_stopped_from_here(code, advice):
    check = check_host(ProbeResult("refused", reason="no", code=code), is_remote=True)
    assert advice in check.advice
    assert "foregram stop" not in check.advice


async def test_a_completion_that_drips_is_not_waited_for_without_end(monkeypatch):
    """Each byte comes in time, and the last one never."""
    monkeypatch.setattr(host_checks, "PROBE_LIMIT_S", 0.3)
    monkeypatch.setattr(host_client, "_ANSWER_S", 0.3)

    async def drip(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nx: ")
        while not reader.at_eof():
            writer.write(b"a")
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1000), 0.01)

    async with listening(drip) as address, asyncio.timeout(10):
        check = await check_latency(address)
    assert (check.state, "more than 0 s" in check.what) == ("failed", True)


@pytest.fixture
def certified(tmp_path):
    """Ask something of a host with a certificate that nobody signed, valid for some days."""

    def certified(days, ask):
        names = "-nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key"
        command = f"openssl req -x509 -newkey rsa:2048 {names} -days {days} -out cert".split()
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

        async def asked():
            listener = await asyncio.start_server(lambda *_: None, "localhost", 0, ssl=context)
            url = f"https://localhost:{listener.sockets[0].getsockname()[1]}"
            async with listener:
                return await asyncio.to_thread(ask, url)

        return asyncio.run(asked())

    return certified


needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")


@needs_openssl
def test_a_certificate_that_nobody_signed_is_a_failure_that_names_ca_file(certified):
    answer = certified(30, lambda url: asyncio.run(probe(HostAddress("", url=url))))
    found = check_host(answer, is_remote=True)
    assert found.state == "failed"
    assert "self-signed certificate; ca_file may name the one that signed it" in found.what


@needs_openssl
@pytest.mark.parametrize(("days", "what"), [(15, None), (14, "is valid for 13 more days")])
def test_a_certificate_that_ends_soon_is_a_warning(certified, tmp_path, days, what):
    ca_file = tmp_path / "cert"
    found = certified(days, lambda url: check_tls(HostAddress("", url=url, ca_file=ca_file)))
    assert found is None if what is None else (found.state, what in found.what) == ("warning", True)


def test_what_is_not_encrypted_is_a_warning_unless_it_is_on_this_machine():
    assert check_tls(HostAddress("", url="http://127.0.0.1:8012")) is None
    assert check_tls(HostAddress("", url="http://gpu.example.org")).state == "warning"
