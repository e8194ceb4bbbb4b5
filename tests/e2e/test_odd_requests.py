"""`foregram serve` on a tiny model, and requests that no client of ours would send.

Whatever comes, the answer is below 500 and comes in time, and the host lives. `make fuzz` asks
20,000 times, and as often in the languages of other programs.
"""

import json
import os
import random
import socket
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from engine.host.compat import llama_cpp, openai, tabby
from engine.host.compat.apis import NAMES
from engine.host.protocol import CloseRequest, CompleteRequest, Feedback, SyncRequest
from tests.support.odd_json import bent, value_of
from tests.support.served_host import ANSWER_S, tiny_host, token_of
from tests.support.tiny_models import save_model, tiny_model

NUM_CASES = int(os.environ.get("FUZZ_CASES", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
NATIVE = {
    "/v1/complete": CompleteRequest,
    "/v1/buffers": SyncRequest,
    "/v1/buffers/close": CloseRequest,
    "/v1/feedback": Feedback,
}
READ = ("/v1/status", "/health", "/metrics")
DROP_IN = (
    ("/v1/completions", openai.OpenAIBody),
    ("/v1/completions", tabby.TabbyBody),
    ("/v1/fim/completions", openai.FimBody),
    ("/infill", llama_cpp.LlamaBody),
    ("/completion", llama_cpp.LlamaBody),
    ("/v1/events", tabby.TabbyEvent),
)
# Quotas that no test reaches.
QUOTAS = ("requests=100000", "clients=100000", "buffers=100000", "megabytes=100000")

pytestmark = pytest.mark.timeout(200 + NUM_CASES // 5)


@pytest.fixture(scope="module")
def served():
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name:
        model = save_model(tiny_model("qwen2"), Path(name, "tiny"))
        options = ["--dtype", "float32", "--api", ",".join(NAMES)]
        for quota in QUOTAS:
            options += ["--quota", quota]
        with tiny_host(Path(name), model, ["eve"], *options) as host:
            yield host


@pytest.fixture
def host(served):
    with served.client(token_of("eve")) as http:
        yield http, served


def ask_often(host, request_of):
    """Send random requests; return how often each status came."""
    http, served = host
    chance, statuses = random.Random(SEED), Counter[int]()  # noqa: S311 - the same in every run
    for _ in range(NUM_CASES):
        method, path, options = request_of(chance)
        answer = http.request(method, path, **options)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (path, options, answer.text, served.log[-2000:])
        if path == "/v1/complete" and answer.status_code == 200:
            last = json.loads(answer.text.splitlines()[-1])
            assert last["type"] == "done" or last["code"] != "internal_error", (options, last)
    sys.stdout.write(f"{dict(statuses)}\n")
    assert served.process.poll() is None
    assert http.get("/health").status_code == 200
    assert "Traceback" not in served.log
    assert " failed: " not in served.log
    return statuses


def body(chance, kind):
    """Return a body by a type's schema, in three of four cases distorted."""
    (schema,), named = msgspec.json.schema_components([kind], ref_template="#/x/{name}")
    value = bent(chance, value_of(chance, schema, named), chance.randrange(4))
    return {"content": json.dumps(value).encode()}


def test_no_message_that_a_schema_is_near_to_fails_the_host(host):
    def request_of(chance):
        path = chance.choice([*NATIVE, *READ])
        if path in NATIVE:
            return "POST", path, body(chance, NATIVE[path])
        query = {chance.choice(["client", "x"]): chance.choice(["", "one", "\0", "é" * 20])}
        return "GET", path, {"params": query}

    ask_often(host, request_of)


def test_no_message_of_another_programs_client_fails_the_host(host):
    def request_of(chance):
        path, kind = chance.choice(DROP_IN)
        return "POST", path, body(chance, kind)

    assert ask_often(host, request_of)[200] > NUM_CASES // 100


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /v1/status HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"POST /v1/complete HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/complete HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"POST /v1/complete HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n",
        b"GET /%00%ff%2e%2e HTTP/1.1\r\nhost: x\r\n\r\n",
        b"\x00" * 5_000,
    ],
)
def test_bytes_that_are_no_http_disturb_nobody(host, raw):
    http, served = host
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(ANSWER_S)
        stranger.connect(str(served.socket))
        try:
            stranger.sendall(raw)
            stranger.shutdown(socket.SHUT_WR)
            said = stranger.recv(1000)
        except OSError:
            said = b""
    assert not said.startswith(b"HTTP/1.1 5")
    assert http.get("/health").status_code == 200
    assert served.process.poll() is None
