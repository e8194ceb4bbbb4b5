"""`foregram serve` on a tiny model, and requests that no client of ours would send.

Whatever comes, the answer is below 500 and comes in time, and the host lives. `make fuzz` asks
20,000 times.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.host.openapi import openapi_page
from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION
from tests.support.polling import until
from tests.support.schema_values import bent, values
from tests.support.tiny_models import save_model, tiny_model

NUM_CASES = int(os.environ.get("FUZZ_CASES", "300"))
ANSWER_S = 20.0  # far above what a tiny model takes
TOKEN = "a token of the test's own"
HEADERS = {
    "authorization": f"Bearer {TOKEN}",
    PROTOCOL_HEADER: str(PROTOCOL_VERSION),
    "content-type": "application/json",
}
PAGE = openapi_page("test")
SCHEMAS = PAGE["components"]["schemas"]
OPERATIONS = [
    (path, method, operation)
    for path, one in PAGE["paths"].items()
    for method, operation in one.items()
    if path != "/v1/stop"  # which ends it, as it should
]
DEEP = 200_000

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200 + NUM_CASES // 5)]


@contextmanager
def tiny_host(folder: Path):
    model = save_model(tiny_model("qwen2"), folder / "tiny")
    token = folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    log = folder / "log"
    command = [sys.executable, "-m", "lsp_server", "serve", "--socket", str(folder / "host.sock")]
    command += ["--token-file", str(token), "--model", str(model), "--dtype", "float32"]
    environ = os.environ | {"FOREGRAM_CACHE": str(folder / "cache"), "HOME": str(folder)}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=environ) as process,
        client(folder / "host.sock") as http,
    ):

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            is_there = b"listening on" in log.read_bytes()
            return is_there and http.get("/health").status_code == 200

        try:
            until(is_ready, log.read_text, limit_s=120)
            yield http, process, log
        finally:
            process.terminate()


def client(path: Path) -> httpx2.Client:
    transport = httpx2.HTTPTransport(uds=str(path))
    return httpx2.Client(
        base_url="http://host", transport=transport, headers=HEADERS, timeout=ANSWER_S
    )


@pytest.fixture(scope="module")
def host():
    with (
        tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name,
        tiny_host(Path(name)) as one,
    ):
        yield one


def messages(operation):
    """Bodies that the operation asks for, three of four of them bent."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    whole = values(schema, SCHEMAS)
    once = whole.flatmap(bent)
    return st.one_of(whole, once, once.flatmap(bent), once.flatmap(bent).flatmap(bent))


@st.composite
def requests(draw):
    path, method, operation = draw(st.sampled_from(OPERATIONS))
    if "requestBody" not in operation:
        query = draw(st.dictionaries(st.sampled_from(["client", "x"]), st.text(max_size=20)))
        return method, path, {"params": query}
    body = json.dumps(draw(messages(operation))).encode()
    return method, path, {"content": body}


def test_no_message_that_a_schema_is_near_to_fails_the_host(host):
    http, process, log = host
    statuses: dict[int, int] = {}

    @given(requests())
    @settings(
        max_examples=NUM_CASES,
        deadline=None,
        database=None,
        derandomize="FUZZ_CASES" not in os.environ,
        phases=[Phase.generate],  # what fails is shown as it is: the host remembers
        suppress_health_check=list(HealthCheck),
    )
    def ask(request):
        method, path, options = request
        answer = http.request(method, path, **options)
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (request, answer.text, log.read_text()[-2000:])
        if path == "/v1/complete" and answer.status_code == 200:
            last = json.loads(answer.text.splitlines()[-1])
            assert last["type"] == "done" or last["code"] != "internal_error", (request, last)

    ask()
    sys.stdout.write(f"{statuses}\n")
    assert process.poll() is None
    assert http.get("/health").status_code == 200
    assert "Traceback" not in log.read_text()
    assert " failed: " not in log.read_text()


ODD_BODIES = {
    "nothing": b"",
    "nested": b"[" * DEEP,
    "nested objects": b'{"client":' * DEEP,
    "not UTF-8": b'{"client": "\xff\xfe"}',
    "half a surrogate pair": b'{"client": "\\ud800"}',
    "10^400": b'{"bounds": {"timeLimitMs": 1' + b"0" * 400 + b"}}",
    "a number of 100,000 digits": b'{"version": ' + b"9" * 100_000 + b"}",
    "1e999": b'{"sampling": {"temperature": 1e999}}',
    "NaN": b'{"sampling": {"temperature": NaN}}',
    "a lookahead of 5,000 digits": b'{"lookahead": "' + b"9" * 5_000 + b',1,1"}',
    "bytes": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("name", ODD_BODIES)
@pytest.mark.parametrize("path", [path for path, method, _ in OPERATIONS if method == "post"])
def test_a_body_that_is_no_message_is_a_refusal(host, name, path):
    http = host[0]
    whole = {"client": "one", "workspace": "", "uri": "u", "version": 1, "position": {}}
    body = ODD_BODIES[name]
    if path == "/v1/complete" and body.startswith(b"{") and body.endswith(b"}"):
        body = json.dumps(whole).encode()[:-1] + b", " + body[1:]
    answer = http.post(path, content=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "bad_request"


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
    http, process, _ = host
    path = http._transport._pool._uds
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(ANSWER_S)
        stranger.connect(path)
        try:
            stranger.sendall(raw)
            stranger.shutdown(socket.SHUT_WR)
            said = stranger.recv(1000)
        except OSError:
            said = b""
    assert not said.startswith(b"HTTP/1.1 5")
    assert http.get("/health").status_code == 200
    assert process.poll() is None
