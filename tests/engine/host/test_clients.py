"""Which completions feedback may name."""

import pytest

from engine.host.buffers import ClientId
from engine.host.clients import UnknownCompletionError
from engine.host.protocol import Feedback
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine

TEAM, OTHER = "team", "other"


@pytest.fixture
def clients():
    clients = CompletionService(lambda _: HeldEngine()).clients
    clients.note(ClientId(TEAM, "one"), has_buffers=True)
    return clients


def is_known(clients, completion_id, principal=TEAM):
    try:
        clients.record(principal, Feedback("a client", completion_id, "accepted"))
    except UnknownCompletionError:
        return False
    return True


def add(clients, count, first=0):
    for number in range(first, first + count):
        clients.add(TEAM, str(number), 10)


def test_there_is_a_bound_whatever_anyone_asks(clients):
    add(clients, 6000)
    assert not is_known(clients, "999")
    assert is_known(clients, "1000")
