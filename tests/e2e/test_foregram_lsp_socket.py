"""`foregram lsp --socket`: one process, a server for each editor that connects."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.editor import Editor, editor, hostless
from tests.support.raw_messages import framed

SECRETS = "file:///shop/.env"
UNREACHABLE_S = 5.0  # seconds after which an editor seems broken


@contextmanager
def language_server(tmp_path, *arguments):
    """Run a language server that finds no host; yield it and its first line."""
    with subprocess.Popen(
        [sys.executable, "-m", "lsp_server", "lsp", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | hostless(tmp_path),
    ) as process:
        try:
            yield process, process.stderr.readline().decode()
        finally:
            process.kill()


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[bytes]
    path: Path


@pytest.fixture
def served(tmp_path):
    path = tmp_path / "lsp.sock"
    with language_server(tmp_path, "--socket", str(path)) as (process, line):
        assert line == f"foregram: language server on {path}\n"
        yield Served(process, path)


def connected(served: Served, uri: str):
    return editor(uri=uri, socket=served.path)


async def answered(shown: Editor) -> list[str]:
    """Ask, and get an empty answer in time; return the reasons of this server so far."""
    began = time.monotonic()
    assert await shown.items() == []
    assert time.monotonic() - began < UNREACHABLE_S
    return await shown.reasons()


async def test_two_editors_have_documents_of_their_own(served):
    async with connected(served, "file:///shop/a.py") as one, connected(served, SECRETS) as other:
        assert one.capabilities.inline_completion_provider is not None
        one.open("x = |")
        other.open("KEY=|", "plaintext")
        assert await answered(one) == ["host_unreachable"]
        assert await answered(other) == ["secret_file"]
        # Neither knows the other's documents.
        assert await one.items(uri=SECRETS) == []
        assert await other.items(uri="file:///shop/a.py") == []
        assert await one.reasons() == ["host_unreachable", "unknown_document"]
        assert await other.reasons() == ["secret_file", "unknown_document"]


async def test_an_editor_that_leaves_ends_no_other_and_may_come_back(served):
    process = served.process
    async with connected(served, "file:///shop/a.py") as one:
        async with connected(served, SECRETS) as other:
            other.open("KEY=|", "plaintext")
            one.open("x = |")
        assert await answered(one) == ["host_unreachable"]
        async with connected(served, SECRETS) as anew:
            assert await answered(anew) == ["unknown_document"]
        assert await one.reasons() == ["host_unreachable"]
    assert process.poll() is None


async def test_who_hangs_up_in_the_middle_of_a_word_ends_no_other(served):
    words = (b"", b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: 100\r\n\r\n{}")
    async with connected(served, SECRETS) as shown:
        shown.open("KEY=|", "plaintext")
        for count, said in enumerate((*words, b"Content-Length: 7\r\n\r\nnonsens", b"x" * 200_000)):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(served.path))
                stranger.sendall(said)
            assert await answered(shown) == ["secret_file"] * (count + 1)
    served.process.terminate()
    assert b"Traceback" not in await asyncio.to_thread(served.process.stderr.read)


async def test_every_answer_without_a_host_is_empty_quick_and_has_its_reason(served):
    async with connected(served, "file:///shop/a.py") as shown:
        shown.open("x = |")
        for count in range(1, 4):
            assert await answered(shown) == ["host_unreachable"] * count
            shown.type("1")
        (message,) = shown.messages  # only one
        assert message.startswith("foregram: no completion host listens on http://127.0.0.1:9")


async def test_ctrl_c_ends_it_while_an_editor_is_connected(served):
    process = served.process
    async with connected(served, SECRETS) as shown:
        shown.open("KEY=|", "plaintext")
        assert await answered(shown) == ["secret_file"]
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 10) == 130
        assert b"Traceback" not in process.stderr.read()
        shown.client.shutdown_async = _gone


async def _gone(_params: None) -> None:
    """The server has ended."""


async def test_a_socket_file_is_its_users_alone_(tmp_path):
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


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "lsp", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=30,
    )
