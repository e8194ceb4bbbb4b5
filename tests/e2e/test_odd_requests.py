"""`foregram serve` on a tiny model, and requests that no client of ours would send.

Whatever comes, the answer is below 500 and comes in time, and the host lives. `make fuzz` asks
20,000 times, and as often in the languages of other programs.
"""

import json
import os
import socket
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.host.compat import llama_wire, mistral, openai_wire, tabby
from engine.host.compat.dialects import NAMES
from engine.host.openapi import openapi_page
from tests.support.schema_values import bent, values
from tests.support.tiny_host import ANSWER_S, tiny_host
from tests.support.tiny_models import save_model, tiny_model

NUM_CASES = int(os.environ.get("FUZZ_CASES", "300"))
PAGE = openapi_page("test")
SCHEMAS = PAGE["components"]["schemas"]
OPERATIONS = [
    (path, method, operation)
    for path, one in PAGE["paths"].items()
    for method, operation in one.items()
    if path != "/v1/stop"  # which ends it, as it should
]
DROP_IN = (
    ("/v1/completions", openai_wire.OpenAIBody),
    ("/v1/completions", tabby.TabbyBody),
    ("/v1/fim/completions", mistral.FimBody),
    ("/infill", llama_wire.LlamaBody),
    ("/completion", llama_wire.LlamaBody),
    ("/v1/events", tabby.TabbyEvent),
)
DEEP = 200_000
# No limit is in the way; what they do is tested elsewhere.
QUOTAS = ("requests=100000", "clients=100000", "buffers=100000", "megabytes=100000")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200 + NUM_CASES // 5)]


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
    """A client, the process, and the log."""
    with served.client("eve") as http:
        yield http, served.process, served.log


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


FUZZING = settings(
    max_examples=NUM_CASES,
    deadline=None,
    database=None,
    derandomize="FUZZ_CASES" not in os.environ,
    phases=[Phase.generate],  # what fails is shown as it is: the host remembers
    suppress_health_check=list(HealthCheck),
)


def test_no_message_that_a_schema_is_near_to_fails_the_host(host):
    http, process, log = host
    statuses: dict[int, int] = {}

    @given(requests())
    @FUZZING
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


def drop_in_bodies(kind):
    (schema,), named = msgspec.json.schema_components([kind], ref_template="#/x/{name}")
    whole = values(schema, named)
    return st.one_of(whole, whole.flatmap(bent), whole.flatmap(bent).flatmap(bent))


@st.composite
def drop_in_requests(draw):
    path, kind = draw(st.sampled_from(DROP_IN))
    return path, draw(drop_in_bodies(kind))


def test_no_message_of_another_programs_client_fails_the_host(host):
    http, process, log = host
    statuses: dict[int, int] = {}

    @given(drop_in_requests())
    @FUZZING
    def ask(request):
        path, body = request
        answer = http.post(path, content=json.dumps(body).encode())
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (request, answer.text, log.read_text()[-2000:])

    ask()
    sys.stdout.write(f"{statuses}\n")
    assert process.poll() is None
    assert statuses[200] > NUM_CASES // 100
    assert "Traceback" not in log.read_text()
    assert " failed: " not in log.read_text()


ODD_BODIES = {
    "nothing": b"",
    "nested": b"[" * DEEP,
    "nested objects": b'{"client":' * DEEP,
    "not UTF-8": b'{"client": "\xff\xfe"}',
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
def test_bytes_that_are_no_http_disturb_nobody(served, host, raw):
    http, process, _ = host
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
    assert process.poll() is None
