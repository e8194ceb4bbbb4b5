"""Who may come in: tokens, names, protocol versions."""

import secrets
from typing import Any

import msgspec
import pytest

from engine.host.auth import AuthMiddleware
from engine.host.metrics import Metrics
from engine.host.principals import Principals, digest_of, principal_of
from engine.host.protocol import PROTOCOL_VERSION, Problem
from engine.host.quotas import QuotaKeeper

NAMES = ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.2", "[::1]"]


OURS = {"foregram_protocol": str(PROTOCOL_VERSION)}


async def knock(
    path="/v1/status",
    *,
    token=None,
    known=None,
    limits=None,
    metrics=None,
    is_loopback=False,
    replica="",
    kind="http",
    **given,
):
    """What is answered: its status, its headers, its body. A header None is left out."""
    headers = {name: value for name, value in (OURS | given).items() if value is not None}
    sent = []

    async def app(scope, receive, send):
        is_open = scope["type"] != "http" or scope["path"] == "/health"
        principal = None if is_open else principal_of(scope)
        start = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start | {"principal": principal})

    async def receive():
        raise AssertionError("nothing reads the body")

    async def send(event):
        sent.append(event)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    principals = Principals(known) if known else Principals.of(token)
    auth = AuthMiddleware(
        app,
        principals,
        is_loopback,
        limits or QuotaKeeper(),
        metrics=metrics or Metrics(),
        replica=replica,
    )
    await auth({"type": kind, "path": path, "headers": raw}, receive, send)
    return sent


def problem(sent) -> Problem:
    return msgspec.json.decode(sent[1]["body"], type=Problem)


OPEN_DOOR = {"token": "öffne dich", "authorization": "Bearer öffne dich"}
JSON = {"content_type": "application/json", "content_length": "2"}
CHARSET = JSON | {"content_type": "Application/JSON; charset=utf-8"}


@pytest.mark.parametrize(
    ("path", "given"),
    [
        pytest.param("/v1/status", OPEN_DOOR, id="the right token"),
        pytest.param("/v1/status", {"authorization": "Bearer x"}, id="none is asked for"),
        pytest.param("/v1/status", {"host": "models.example"}, id="any name off loopback"),
        pytest.param("/health", {"token": "x", "foregram_protocol": "7"}, id="health is open"),
        pytest.param("/health", {"sec_fetch_site": "none", "foregram_protocol": None}, id="typed"),
        pytest.param("/v1/complete", JSON, id="a body of JSON"),
        pytest.param("/v1/complete", CHARSET, id="a body of JSON with its charset"),
        pytest.param("/v1/complete", {"content_length": "0"}, id="no body"),
    ],
)
async def test_what_may_come_in_is_let_in(path, given):
    (answer,) = await knock(path, **given)
    assert answer["status"] == 200


@pytest.mark.parametrize(
    "given", ["Bearer wrong", "Bearer ", "Bearer right2", "right", "", "Ü", None]
)
async def test_any_other_token_is_401_and_says_how_to_ask(given):
    sent = await knock(token="right", authorization=given)
    assert sent[0]["status"] == 401
    assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]
    assert problem(sent).code == "wrong_token"


async def test_a_wrong_token_leaves_a_line_in_the_log_and_a_right_one_none(caplog):
    await knock(token="right", authorization="Bearer right")
    await knock(token="right", authorization="Bearer wrong")
    assert caplog.messages == [
        "a request was refused: the request does not carry this host's token"
    ]


async def test_tokens_are_compared_with_all_that_are_known_in_constant_time(monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return True

    monkeypatch.setattr(secrets, "compare_digest", compare)
    known = {digest_of(b"one"): "ada", digest_of(b"two"): "bob"}
    assert (await knock(known=known, authorization="Bearer three"))[0]["status"] == 200
    digests = [digest_of(token) for token in (b"three", b"one", b"two")]
    assert compared == [(digests[0], digests[1]), (digests[0], digests[2])]


async def test_the_token_says_who_is_let_in():
    known = {digest_of(b"one"): "ada", digest_of(b"two"): "bob"}
    (answer,) = await knock(known=known, authorization="Bearer two")
    assert answer["principal"] == "bob"
    (answer,) = await knock(token="right", authorization="bearer right")
    assert answer["principal"] == ""


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}:8012" for name in NAMES)])
async def test_on_loopback_this_machine_goes_by_its_own_names(name):
    assert (await knock(is_loopback=True, host=name))[0]["status"] == 200


@pytest.mark.parametrize(
    "name",
    [
        "",
        "evil.example",
        "evil.example:8012",
        "localhost.evil.example:8012",
        "127.0.0.1.evil.example",
        "192.168.0.7:8012",
        "[2001:db8::1]:8012",
        ":8012",
    ],
)
async def test_on_loopback_another_name_is_403_whatever_the_path(name):
    """A web page whose name is rebound to 127.0.0.1 still sends its own name."""
    for path in ("/v1/status", "/health"):
        sent = await knock(path, is_loopback=True, host=name)
        assert sent[0]["status"] == 403
        assert problem(sent) == Problem("wrong_host", f"this host does not go by the name {name!r}")


@pytest.mark.parametrize("path", ["/health/", "/health/deep", "//health", "/v1/health"])
async def test_what_looks_like_health_is_not_open(path):
    assert (await knock(path, token="right"))[0]["status"] == 401


@pytest.mark.parametrize("version", ["0", "1", "2.0", "", "two", None])
async def test_another_protocol_version_is_426_with_what_to_do(version):
    sent = await knock(foregram_protocol=version)
    assert sent[0]["status"] == 426
    assert "install one version of foregram on both sides" in problem(sent).message
    missing = "the request has no header foregram-protocol"
    assert (missing in problem(sent).message) == (not version)
    assert (await knock(token="right", foregram_protocol=version))[0]["status"] == 401


async def test_what_is_no_request_goes_straight_through():
    (answer,) = await knock(token="right", kind="lifespan")
    assert answer["status"] == 200


@pytest.mark.parametrize("path", ["/v1/status", "/v1/stop", "/v1/buffers", "/metrics", "/health"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8012"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "same-origin"},
    ],
)
@pytest.mark.parametrize("is_loopback", [True, False])
async def test_what_a_browser_sends_for_a_page_is_403_even_with_the_token(
    path, headers, is_loopback
):
    bearer = {"token": "right", "authorization": "Bearer right"}
    sent = await knock(path, host="127.0.0.1", is_loopback=is_loopback, **bearer, **headers)
    assert sent[0]["status"] == 403
    assert problem(sent).code == "web_page"


async def test_prometheus_needs_the_token_and_no_header_of_ours():
    bearer = {"token": "right", "foregram_protocol": None}
    (answer,) = await knock("/metrics", authorization="Bearer right", **bearer)
    assert answer["status"] == 200
    assert (await knock("/metrics", **bearer))[0]["status"] == 401


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"]
)
async def test_a_body_of_a_type_that_any_page_may_send_is_415(kind):
    sent = await knock("/v1/complete", content_type=kind, content_length="2")
    assert sent[0]["status"] == 415
    assert problem(sent).code == "wrong_type"


TEAM = {digest_of(f"{name}'s".encode()): name for name in ("ada", "eve", "metrics")}


async def test_who_sends_too_many_requests_is_429_before_its_body_is_read_and_others_are_let_in():
    limits = QuotaKeeper(["requests=1"], lambda: 0.0)
    for _ in range(3):
        (answer,) = await knock(known=TEAM, limits=limits, authorization="Bearer eve's")
        assert answer["status"] == 200
    sent = await knock(known=TEAM, limits=limits, authorization="Bearer eve's")
    assert sent[0]["status"] == 429
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert problem(sent) == Problem(
        "quota",
        "you may send 1 requests a second here, large ones count as several, and you sent more",
    )
    (answer,) = await knock(known=TEAM, limits=limits, authorization="Bearer ada's")
    assert answer["status"] == 200


async def test_health_and_wrong_tokens_cost_nobody_a_request():
    limits = QuotaKeeper(["requests=1"], lambda: 0.0)
    for _ in range(9):
        assert (await knock("/health", known=TEAM, limits=limits))[0]["status"] == 200
        guess = await knock(known=TEAM, limits=limits, authorization="Bearer guess")
        assert guess[0]["status"] == 401


@pytest.mark.parametrize("path", ["/v1/complete", "/v1/status", "/metrics/", "//metrics"])
async def test_the_token_for_the_figures_is_for_nothing_else(path):
    sent = await knock(path, known=TEAM, authorization="Bearer metrics's")
    assert (sent[0]["status"], problem(sent).code) == (403, "not_allowed")
    (answer,) = await knock("/metrics", known=TEAM, authorization="Bearer metrics's")
    assert answer["status"] == 200


async def test_what_is_refused_is_counted_by_its_reason():
    metrics, limits = Metrics(), QuotaKeeper(["requests=1"], lambda: 0.0)
    known = {digest_of(b"one"): "ada"}
    for token in ("wrong", "one", "one", "one", "one"):
        bearer = {"authorization": f"Bearer {token}"}
        await knock(known=known, limits=limits, metrics=metrics, **bearer)
    await knock(known=known, metrics=metrics, origin="https://evil.example")
    page = metrics.page({}).decode()
    assert 'foregram_refusals_total{reason="wrong_token"} 1.0' in page
    assert 'foregram_refusals_total{reason="quota"} 1.0' in page
    assert 'foregram_refusals_total{reason="web_page"} 1.0' in page


async def test_each_answer_of_several_hosts_tells_its_replica():
    for given in ("Bearer right", "Bearer wrong"):
        sent = await knock(token="right", authorization=given, replica="one")
        assert (b"foregram-replica", b"one") in sent[0]["headers"]


async def test_an_event_that_is_sent_again_has_the_name_of_its_replica_once():
    again = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
    sent = []

    async def send(event):
        sent.append(event)

    auth = AuthMiddleware(
        lambda _scope, _receive, send: send(again), Principals(), is_loopback=False, replica="one"
    )
    unread: Any = None
    for _ in range(2):
        await auth({"type": "http", "path": "/health", "headers": []}, unread, send)
    assert sent == 2 * [again | {"headers": [(b"a", b"b"), (b"foregram-replica", b"one")]}]
    assert again["headers"] == [(b"a", b"b")]
