"""Who may come in: tokens, names, protocol versions."""

import secrets

import msgspec
import pytest

from engine.host.gate import Gate
from engine.host.protocol import Problem

pytestmark = pytest.mark.asyncio

NAMES = ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.2", "[::1]"]


async def knock(path="/v1/status", *, token=None, is_loopback=False, kind="http", **headers):
    """The answer of a gate: its status, its headers, its body."""
    sent = []

    async def app(scope, receive, send):
        sent.append({"status": 200})

    async def receive():
        raise AssertionError("the gate reads no body")

    async def send(event):
        sent.append(event)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    gate = Gate(app, token, is_loopback=is_loopback)
    await gate({"type": kind, "path": path, "headers": raw}, receive, send)
    return sent


def problem(sent) -> Problem:
    return msgspec.json.decode(sent[1]["body"], type=Problem)


async def test_the_right_token_lets_in():
    (answer,) = await knock(token="öffne dich", authorization="Bearer öffne dich")
    assert answer["status"] == 200


@pytest.mark.parametrize("given", ["Bearer wrong", "Bearer ", "Bearer right2", "right", "", "Ü"])
async def test_any_other_token_is_401_and_says_how_to_ask(given):
    sent = await knock(token="right", authorization=given)
    assert sent[0]["status"] == 401
    assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]
    assert problem(sent).code == "wrong_token"


async def test_no_token_at_all_is_401_too():
    assert (await knock(token="right"))[0]["status"] == 401


async def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return True

    monkeypatch.setattr(secrets, "compare_digest", compare)
    assert (await knock(token="right", authorization="Bearer wrong"))[0]["status"] == 200
    assert compared == [(b"Bearer wrong", b"Bearer right")]


async def test_a_gate_without_a_token_asks_for_none():
    assert (await knock(authorization="Bearer whatever"))[0]["status"] == 200


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


async def test_off_loopback_any_name_will_do():
    assert (await knock(host="models.example"))[0]["status"] == 200


async def test_health_is_open_to_all():
    (answer,) = await knock("/health", token="right", foregram_protocol="7")
    assert answer["status"] == 200


@pytest.mark.parametrize("path", ["/health/", "/health/deep", "//health", "/v1/health"])
async def test_what_looks_like_health_is_not_open(path):
    assert (await knock(path, token="right"))[0]["status"] == 401


@pytest.mark.parametrize("version", ["0", "2", "1.0", "", "one"])
async def test_another_protocol_version_is_426_with_what_to_do(version):
    sent = await knock(foregram_protocol=version)
    assert sent[0]["status"] == 426
    assert "install one version of foregram on both sides" in problem(sent).message


async def test_who_does_not_know_the_token_does_not_hear_the_version():
    assert (await knock(token="right", foregram_protocol="2"))[0]["status"] == 401


async def test_what_is_no_request_goes_straight_through():
    (answer,) = await knock(token="right", kind="lifespan")
    assert answer["status"] == 200
