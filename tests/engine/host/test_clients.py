"""Which completions feedback may name, and which clients are gone."""

import pytest

from engine.host.buffers import ClientId
from engine.host.protocol import Feedback
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine

TEAM = "team"


@pytest.fixture
def clients():
    clients = CompletionService(lambda _: HeldEngine()).clients
    clients.note(ClientId(TEAM, "one"))
    return clients


def test_there_is_a_bound_whatever_anyone_asks(clients):
    for number in range(6000):
        clients.add(TEAM, str(number), 10)
    told = [Feedback("a client", name, "accepted") for name in ("999", "1000")]
    assert [clients.record(TEAM, one) for one in told] == [False, True]


def test_silent_clients_are_dropped_and_those_that_speak_stay(monkeypatch):
    now = 100.0
    monkeypatch.setattr("engine.host.clients.time.monotonic", lambda: now)
    service = CompletionService(lambda _: HeldEngine())
    for name in ("silent", "speaking", "syncing"):
        service.buffers.sync(ClientId(TEAM, name), "/", [])
    now += 500.0
    service.clients.record(TEAM, Feedback("speaking", "no completion", "shown"))
    service.buffers.sync(ClientId(TEAM, "syncing"), "/", [])
    now += 500.0
    service.clients.leave_silent()
    assert [one.name for one in service.buffers.clients] == ["speaking", "syncing"]
