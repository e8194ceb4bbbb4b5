"""`foregram lsp --port`: one process, a server of its own for each editor that connects."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.support.editor import Editor

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio]

SECRETS = "file:///shop/.env"
UNREACHABLE_S = 5.0  # an editor that waits longer than this for nothing looks broken


@contextmanager
def language_server(tmp_path, *arguments):
    """A language server that finds no host, and the port that it tells."""
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
            line = process.stderr.readline().decode()
            port = re.fullmatch(r"foregram: language server on 127\.0\.0\.1:(\d+)\n", line)
            assert port, line
            yield process, int(port[1])
        finally:
            process.kill()


@pytest.fixture
def served(tmp_path):
    with language_server(tmp_path, "--port", "0") as (process, port):
        yield process, port


@asynccontextmanager
async def editor(port: int, uri: str):
    """An editor that is connected and initialized."""
    client = LanguageClient("test editor", "1")
    shown = Editor(client, uri)

    @client.feature(types.WINDOW_SHOW_MESSAGE)
    @client.feature(types.WINDOW_LOG_MESSAGE)
    def note(params) -> None:
        shown.messages.append(params.message)

    await client.start_tcp("127.0.0.1", port)
    try:
        params = types.InitializeParams(types.ClientCapabilities(), root_uri="file:///shop")
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
    _, port = served
    async with editor(port, "file:///shop/a.py") as one, editor(port, SECRETS) as other:
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
    _, port = served
    uri = "file:///shop/a.py"
    async with editor(port, uri) as one, editor(port, uri) as other:
        one.open("x = 1\ny = 2|")
        other.open("|")
        assert await other.items(position=types.Position(1, 0)) == []
        assert await one.items(position=types.Position(1, 0)) == []
        assert await other.reasons() == ["bad_position"]
        assert await one.reasons() == ["host_unreachable"]


async def test_an_editor_that_leaves_ends_no_other_and_may_come_back(served):
    process, port = served
    async with editor(port, "file:///shop/a.py") as one:
        async with editor(port, SECRETS) as other:
            other.open("KEY=|", "plaintext")
            one.open("x = |")
        assert await answered(one) == ["host_unreachable"]
        async with editor(port, SECRETS) as anew:
            assert await answered(anew) == ["unknown_document"]
        assert await one.reasons() == ["host_unreachable"]
    assert process.poll() is None


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"Content-Length: 100\r\n\r\n{}",
        b"Content-Length: 7\r\n\r\nnonsens",
        b"x" * 200_000,
    ],
)
async def test_who_hangs_up_in_the_middle_of_a_word_ends_no_other(served, said):
    process, port = served
    async with editor(port, SECRETS) as shown:
        shown.open("KEY=|", "plaintext")
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(said)
        assert await answered(shown) == ["secret_file"]
    process.terminate()
    assert b"Traceback" not in await asyncio.to_thread(process.stderr.read)


async def test_every_answer_without_a_host_is_empty_quick_and_has_its_reason(served):
    _, port = served
    async with editor(port, "file:///shop/a.py") as shown:
        shown.open("x = |")
        for count in range(1, 4):
            assert await answered(shown) == ["host_unreachable"] * count
            shown.type("1")
        (message,) = shown.messages  # told once
        assert message.startswith("foregram: no completion host listens on http://127.0.0.1:9")


async def test_ctrl_c_ends_it_while_an_editor_is_connected(served):
    process, port = served
    async with editor(port, SECRETS) as shown:
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
    _, port = served
    result = await asyncio.to_thread(run, "--port", str(port))
    assert result.returncode == 2
    assert result.stderr.startswith(f"foregram: cannot listen on port {port}: ".encode())
    assert result.stderr.count(b"\n") == 1


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "lsp", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=30,
    )
