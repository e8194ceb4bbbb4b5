"""`foregram serve` in processes of its own, over a socket and over TCP."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import msgspec
import pytest

from engine.config import StopRules
from engine.host.protocol import CompleteEvent, Status
from engine.request import Chunk, Done
from tests.support.ports import free_port
from tests.support.running_host import headers_with
from tests.support.served_host import ServedHost, request, secret_file, served_host
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.timeout(200)  # compiles first

TOKEN = "open sesame of a test"
LINES = ("def total(items):", '    """The price of all items."""', "    ")


@dataclass(frozen=True)
class Served:
    host: ServedHost
    client: httpx2.Client
    first_health: httpx2.Response  # as soon as it answered at all

    def status(self) -> Status:
        return msgspec.json.decode(self.client.get("/v1/status").content, type=Status)

    def events(self, max_tokens=12):
        asked = msgspec.structs.replace(request(*LINES), stop=StopRules(max_tokens=max_tokens))
        content = msgspec.json.encode(asked)
        with self.client.stream("POST", "/v1/complete", content=content) as response:
            assert response.status_code == 200, response.read()
            for line in response.iter_lines():
                yield msgspec.json.decode(line, type=CompleteEvent)


@contextmanager
def serving(folder, cache_folder, *options, token="", url=""):
    own = {"FOREGRAM_CACHE": str(cache_folder)}
    with (
        served_host(folder, *options, url=url, environ=own) as host,
        host.client(token, 60) as client,
    ):
        yield Served(host, client, client.get("/health"))


def foregram(*arguments):
    return [sys.executable, "-m", "lsp_server", *arguments]


def told(*arguments, environ):
    words = foregram(*arguments)
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_model(tiny_model("qwen2"), tmp_path_factory.mktemp("tiny") / "model")


def test_it_answers_before_its_model_is_loaded_and_then_completes(short_folder, cache_folder, tiny):
    secret_file(short_folder / "token", TOKEN)
    url = f"http://127.0.0.1:{free_port()}"
    place = ("--token-file", "token", "--model", tiny)
    with serving(short_folder, cache_folder, *place, token=TOKEN, url=url) as served:
        assert served.first_health.status_code == 503
        assert served.first_health.json() == {"status": "loading"}
        served.host.until_ready()
        assert served.client.get("/health").json() == {"status": "ok"}
        *chunks, done = served.events()
        assert isinstance(done, Done)
        assert all(isinstance(chunk, Chunk) for chunk in chunks)
        assert "".join(chunk.text for chunk in chunks) == done.text
        assert 0 < done.cost.tokens <= 12
        status, pid = served.status(), served.host.process.pid
        assert (status.state, status.pid, status.num_buffers) == ("ready", pid, 1)
        assert "foregram_tokens_total" in served.client.get("/metrics").text
        wrong = {"authorization": "Bearer guess"}
        assert served.client.get("/v1/status", headers=wrong).status_code == 401


def test_sigterm_drains_a_completion_and_leaves_the_files_of_others(
    short_folder, cache_folder, tiny
):
    other = short_folder / "other.sock"
    with (
        socket.socket(socket.AF_UNIX) as neighbour,
        serving(short_folder, cache_folder, "--model", tiny) as served,
    ):
        neighbour.bind(str(other))
        served.host.until_ready()
        events = served.events(max_tokens=48)
        first = next(events)
        served.host.process.send_signal(signal.SIGTERM)
        chunks = [first, *events]
        done = chunks.pop()
        assert isinstance(done, Done)
        assert "".join(chunk.text for chunk in chunks) == done.text
        assert done.finish_reason != "cancelled"
        assert served.host.process.wait(15) == 0
        assert "Traceback" not in served.host.log
    assert {path.name for path in short_folder.iterdir()} == {"log", "other.sock"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_host_that_still_loads(short_folder, cache_folder, tiny, number):
    with serving(short_folder, cache_folder, "--model", tiny) as served:
        served.host.process.send_signal(number)
        assert served.host.process.wait(15) == 0
        assert "Traceback" not in served.host.log


def test_the_systems_choice_of_a_port_is_told_and_a_token_that_its_user_finds_is_asked_for(
    tmp_path, cache_folder
):
    own = os.environ | {"FOREGRAM_CACHE": str(cache_folder), "FOREGRAM_RUNTIME": str(tmp_path)}
    command = foregram("serve", "--port", "0", "--model", "9000b")
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=own, text=True) as process:
        try:
            lines = process.stderr.readline() + process.stderr.readline()
            [place] = re.findall(r"listening on (127\.0\.0\.1:\d+)$", lines, re.M)
            [name] = re.findall(r"clients need the token in (\S+);", lines)
            url, path = f"http://{place}", Path(name)
            bearer = headers_with(path.read_text().strip())
            assert httpx2.get(f"{url}/v1/status", headers=headers_with()).status_code == 401
            assert httpx2.get(f"{url}/v1/status", headers=bearer).status_code == 200
            found = told("status", "--json", environ=own | {"FOREGRAM_HOST_URL": url})
            assert json.loads(found.stdout)["pid"] == process.pid
            other = {"FOREGRAM_HOST_URL": url, "FOREGRAM_RUNTIME": str(tmp_path / "another")}
            stranger = told("status", environ=own | other)
            assert "does not carry this host's token" in stranger.stderr
        finally:
            process.terminate()
            process.stderr.read()
    assert not path.exists()
