"""`foregram lsp --port` and `--socket`: one process, a server for each editor that connects."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.support.editor import Editor
from tests.support.raw_messages import framed

SECRETS = "file:///shop/.env"
PORT = r"foregram: language server on 127\.0\.0\.1:(\d+) \(connectionToken in (.+)\)\n"
UNREACHABLE_S = 5.0  # an editor that waits longer than this for nothing looks broken


@contextmanager
def language_server(tmp_path, *arguments):
    """A language server that finds no host, and what it says where it listens."""
    environ = {
        "FOREGRAM_RUNTIME": str(tmp_path / "run"),
        "FOREGRAM_CACHE": str(tmp_path / "cache"),
        "FOREGRAM_HOST_URL": "http://127.0.0.1:9",
        "HOME": str(tmp_path),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "lsp_server", "lsp", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environ,
    ) as process:
        try:
            yield process, process.stderr.readline().decode()
        finally:
            process.kill()


@dataclass(frozen=True)
class Served:
    """A process that listens, and what it asks its clients for."""

    process: subprocess.Popen[bytes]
    port: int
    token: str


@pytest.fixture
def served(tmp_path):
    with language_server(tmp_path, "--port", "0") as (process, line):
        place = re.fullmatch(PORT, line)
        assert place, line
        yield Served(process, int(place[1]), Path(place[2]).read_text().strip())


@asynccontextmanager
async def editor(served: Served, uri: str, **options):
    """An editor that is connected and initialized."""
    client = LanguageClient("test editor", "1")
    shown = Editor(client, uri)

    @client.feature(types.WINDOW_SHOW_MESSAGE)
    @client.feature(types.WINDOW_LOG_MESSAGE)
    def note(params) -> None:
        shown.messages.append(params.message)

    await client.start_tcp("127.0.0.1", served.port)
    try:
        params = types.InitializeParams(
            types.ClientCapabilities(),
            root_uri="file:///shop",
            initialization_options={"connectionToken": served.token, "foregram": options},
        )
        shown.capabilities = (await client.initialize_async(params)).capabilities
        client.initialized(types.InitializedParams())
        yield shown
        await client.shutdown_async(None)
        client.exit(None)
    finally:
        with suppress(ConnectionError):
            client.protocol.writer.close()
            await client.protocol.writer.wait_closed()
        with suppress(Exception):
            await client.stop()


async def answered(shown: Editor) -> list[str]:
    """Ask once, get nothing, and in time; the reasons of this server so far."""
    began = time.monotonic()
    assert await shown.items() == []
    assert time.monotonic() - began < UNREACHABLE_S
    return await shown.reasons()


async def test_port_0_is_the_systems_choice_and_two_editors_have_documents_of_their_own(served):
    async with editor(served, "file:///shop/a.py") as one, editor(served, SECRETS) as other:
        assert one.capabilities.inline_completion_provider is not None
        one.open("x = |")
        other.open("KEY=|", "plaintext")
        assert await answered(one) == ["host_unreachable"]
        assert await answered(other) == ["secret_file"]
        # Neither knows what the other has opened.
        assert await one.items(uri=SECRETS) == []
        assert await other.items(uri="file:///shop/a.py") == []
        assert await one.reasons() == ["host_unreachable", "unknown_document"]
        assert await other.reasons() == ["secret_file", "unknown_document"]


async def test_one_document_of_two_editors_is_two_texts(served):
    uri = "file:///shop/a.py"
    async with editor(served, uri) as one, editor(served, uri) as other:
        one.open("x = 1\ny = 2|")
        other.open("|")
        assert await other.items(position=types.Position(1, 0)) == []
        assert await one.items(position=types.Position(1, 0)) == []
        assert await other.reasons() == ["bad_position"]
        assert await one.reasons() == ["host_unreachable"]


async def test_an_editor_that_leaves_ends_no_other_and_may_come_back(served):
    process = served.process
    async with editor(served, "file:///shop/a.py") as one:
        async with editor(served, SECRETS) as other:
            other.open("KEY=|", "plaintext")
            one.open("x = |")
        assert await answered(one) == ["host_unreachable"]
        async with editor(served, SECRETS) as anew:
            assert await answered(anew) == ["unknown_document"]
        assert await one.reasons() == ["host_unreachable"]
    assert process.poll() is None


async def test_who_hangs_up_in_the_middle_of_a_word_ends_no_other(served):
    words = (b"", b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: 100\r\n\r\n{}")
    async with editor(served, SECRETS) as shown:
        shown.open("KEY=|", "plaintext")
        for count, said in enumerate((*words, b"Content-Length: 7\r\n\r\nnonsens", b"x" * 200_000)):
            with socket.create_connection(("127.0.0.1", served.port)) as stranger:
                stranger.sendall(said)
            assert await answered(shown) == ["secret_file"] * (count + 1)
    served.process.terminate()
    assert b"Traceback" not in await asyncio.to_thread(served.process.stderr.read)


async def test_every_answer_without_a_host_is_empty_quick_and_has_its_reason(served):
    async with editor(served, "file:///shop/a.py") as shown:
        shown.open("x = |")
        for count in range(1, 4):
            assert await answered(shown) == ["host_unreachable"] * count
            shown.type("1")
        (message,) = shown.messages  # told once
        assert message.startswith("foregram: no completion host listens on http://127.0.0.1:9")


async def test_ctrl_c_ends_it_while_an_editor_is_connected(served):
    process = served.process
    async with editor(served, SECRETS) as shown:
        shown.open("KEY=|", "plaintext")
        assert await answered(shown) == ["secret_file"]
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 10) == 130
        assert b"Traceback" not in process.stderr.read()
        shown.client.shutdown_async = _gone


async def _gone(_params: None) -> None:
    """There is no server to shut down any more."""


@pytest.mark.parametrize("port", ["65536", "-1"])
async def test_a_port_out_of_range_is_one_sentence_and_status_2(port):
    result = await asyncio.to_thread(run, "--port", port)
    assert result.returncode == 2
    assert result.stderr == f"foregram: port {port} is not within 0 and 65535\n".encode()


async def test_a_port_in_use_is_one_sentence_and_status_2(served):
    result = await asyncio.to_thread(run, "--port", str(served.port))
    assert result.returncode == 2
    assert result.stderr.startswith(f"foregram: cannot listen on port {served.port}: ".encode())
    assert result.stderr.count(b"\n") == 1


async def test_a_client_may_not_say_where_text_goes_or_what_is_loaded(served):
    told = {"hostUrl": "http://127.0.0.1:8", "token_file": "/etc/hostname", "maxTokens": 7}
    async with editor(served, "file:///shop/a.py", **told) as shown:
        shown.open("x = |")
        assert await answered(shown) == ["host_unreachable"]
    refused, unreachable = sorted(shown.messages, key=lambda text: "not taken" not in text)
    assert "hostUrl is taken only from foregram.toml and the environment" in refused
    assert "token_file is taken only from foregram.toml and the environment" in refused
    assert "maxTokens" not in refused
    assert "http://127.0.0.1:9" in unreachable  # the environment's


async def test_a_web_page_reaches_nothing(served, tmp_path):
    """One cross-origin POST once changed the settings, and sent a file's content away."""
    settings = {"foregram": {"debug": True, "runtimeFolder": str(tmp_path / "made")}}
    params = {"settings": settings}
    said = json.dumps(
        {"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": params}
    )
    request = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(said)}\r\n\r\n{said}"
    with socket.create_connection(("127.0.0.1", served.port), timeout=UNREACHABLE_S) as page:
        page.sendall(request.encode())
        with suppress(ConnectionResetError):
            assert page.recv(1000) == b""  # hung up on, without a word
    assert not (tmp_path / "made").exists()


async def test_a_socket_file_is_its_users_alone_and_asks_for_no_token(tmp_path):
    path = tmp_path / "lsp.sock"
    with language_server(tmp_path, "--socket", str(path)) as (process, line):
        assert line == f"foregram: language server on {path}\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(framed(id=1, method="initialize", params={"capabilities": {}}))
        assert (await reader.readline()).startswith(b"Content-Length: ")
        second = await asyncio.to_thread(run, "--socket", str(path))
        assert second.returncode == 2
        assert second.stderr.startswith(f"foregram: cannot listen on {path}: ".encode())
        writer.close()
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 10) == 130
        assert not path.exists()


async def test_a_socket_file_that_nobody_listens_on_is_replaced(tmp_path):
    path = tmp_path / "lsp.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with language_server(tmp_path, "--socket", str(path)) as (_, line):
        assert line == f"foregram: language server on {path}\n"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "lsp", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=30,
    )
