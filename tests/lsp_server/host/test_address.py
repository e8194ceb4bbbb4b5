"""Where a host is expected, and what asking there may come to."""

import asyncio
import sys

import httpx2
import msgspec
import pytest

from engine.errors import ConfigurationError
from engine.host.runtime import RuntimeFolderError
from lsp_server.host.address import HostAddress, SocketTransport, host_address
from lsp_server.host.client import host_status
from tests.support.running_host import listening


def test_a_remote_host_that_is_not_there_is_named_by_its_url(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="http://127.0.0.1:9")
    reason = asyncio.run(host_status(settings)).reason
    assert reason == "no completion host listens on http://127.0.0.1:9"


@pytest.mark.parametrize("token", ["zwölf", "one\ntwo"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token):
    with pytest.raises(
        ConfigurationError, match="something else than one line of printable ASCII"
    ) as error:
        HostAddress(token)
    assert token not in str(error.value)


def test_a_remote_host_is_asked_with_the_token_of_the_settings_before_that_of_the_file(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="http://127.0.0.1:9", token="first")
    assert host_address(settings).token == "first"
    settings = msgspec.structs.replace(settings, token_file=stub.folder.path / "missing")
    assert host_address(settings).token == "first"


def test_the_token_of_a_host_on_this_machine_is_found(stub):
    stub.folder.keep_port_token("127.0.0.1", 8012, "made by the host")
    for url, token in {
        "http://127.0.0.1:8012": "made by the host",
        "http://localhost:8012": "made by the host",
        "http://127.0.0.1:8013": "",
        "http://[::1]:8012": "",
        "https://gpu.example.org:8012": "",
    }.items():
        settings = msgspec.structs.replace(stub.settings, host_url=url)
        assert host_address(settings).token == token, url
    settings = msgspec.structs.replace(stub.settings, host_url="http://127.0.0.1:8012", token="own")
    assert host_address(settings).token == "own"


def test_a_token_that_others_could_read_is_not_used(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="http://127.0.0.1:8012")
    stub.folder.keep_port_token("127.0.0.1", 8012, "made by the host").chmod(0o644)
    with pytest.raises(RuntimeFolderError, match="is open to other users; run: chmod 600"):
        host_address(settings)


@pytest.mark.parametrize(
    "url",
    [
        "http://gpu.example.org",
        "http://192.168.0.7:8012",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1@evil.example",
        "http://0.0.0.0:8012",
    ],
)
def test_a_host_elsewhere_without_tls_is_refused_unless_the_settings_say_so(stub, url):
    settings = msgspec.structs.replace(stub.settings, host_url=url, token="secret")
    with pytest.raises(ConfigurationError, match="is not encrypted, so others could read"):
        host_address(settings)
    settings = msgspec.structs.replace(settings, insecure_http=True)
    assert host_address(settings).url == url


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8012", "http://localhost", "http://[::1]:1", "https://gpu.example"]
)
def test_this_machine_and_tls_are_fine(stub, url):
    settings = msgspec.structs.replace(stub.settings, host_url=url)
    assert host_address(settings).url == url


async def test_no_proxy_sees_what_stays_on_this_machine(monkeypatch):
    """Neither the code nor the token: whoever set the proxy did not think of them."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with HostAddress("", url=f"http://127.0.0.1:{port}").client() as client:
            assert (await client.get("/v1/status")).status_code == 418


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "ftp://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_told_by_its_variable(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setitem(sys.modules, "socksio", None)  # it may be installed
    with pytest.raises(ConfigurationError, match="ALL_PROXY names cannot be used"):
        HostAddress("", url="https://foregram.test").client()


def test_an_address_does_not_show_its_token(stub):
    assert stub.folder.token() not in repr(host_address(stub.settings))


def test_a_host_url_that_is_no_address_is_named(stub):
    settings = msgspec.structs.replace(stub.settings, host_url="http://a:port")
    with pytest.raises(ConfigurationError, match="host_url http://a:port is not an address"):
        asyncio.run(host_status(settings))


@pytest.mark.parametrize("name", ["token_file", "ca_file"])
def test_a_file_that_is_not_there_is_named(stub, tmp_path, name):
    settings = msgspec.structs.replace(
        stub.settings, host_url="https://127.0.0.1:9", **{name: tmp_path / "gone"}
    )
    with pytest.raises(ConfigurationError, match=f"{name} .*gone"):
        asyncio.run(host_status(settings))


ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def client(address, **options):
    transport = SocketTransport(address.socket_path)
    return httpx2.AsyncClient(transport=transport, base_url="http://host", **options)


async def test_requests_share_a_connection_until_the_host_has_closed_it():
    writers = []

    async def twice(reader, writer):
        writers.append(writer)
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)

    async with listening(twice) as address, client(address) as http:
        for _ in range(2):
            assert [(await http.get("/")).text for _ in range(2)] == ["ok"] * 2
            while not writers[-1].transport.is_closing():
                await asyncio.sleep(0)
            await asyncio.sleep(0.05)
    assert len(writers) == 2


async def test_a_host_that_says_nothing_is_a_timeout():
    async def silent(reader, _):
        await reader.read()

    async with listening(silent) as address, client(address, timeout=0.05) as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get("/")


async def test_requests_that_end_while_their_answers_arrive_leave_nothing_in_the_log(caplog):
    """anyio's streams left an InvalidStateError where both happened in one turn of the loop."""

    async def always(reader, writer):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(ANSWER)

    async with listening(always) as address, client(address) as http:
        for turns in range(60):
            asking = asyncio.create_task(http.get("/"))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert not caplog.records
