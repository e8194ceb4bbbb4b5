"""Which completions feedback may name."""

import pytest

from engine.host.clients import CompletionRegistry, UnknownCompletionError
from engine.host.metrics import Metrics
from engine.host.principals import Principal
from engine.host.protocol import Feedback
from tests.support.stopped_clock import StoppedClock

TEAM, OTHER = Principal("team"), Principal("other")


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def registry(clock):
    return CompletionRegistry(Metrics(), clock)


def is_known(registry, completion_id, principal=TEAM):
    try:
        registry.record(principal, Feedback("a client", completion_id, "accepted"))
    except UnknownCompletionError:
        return False
    return True


def add(registry, count, first=0):
    for number in range(first, first + count):
        registry.add(TEAM, str(number), 10)


def test_who_shares_a_token_with_many_is_heard_for_two_minutes(registry, clock):
    add(registry, 1)
    clock.now = 119
    add(registry, 1000, first=1)
    assert is_known(registry, "0")
    clock.now = 121
    add(registry, 1, first=1001)
    assert not is_known(registry, "0")
    assert is_known(registry, "1")


def test_the_latest_two_hundred_are_known_for_as_long_as_it_takes(registry, clock):
    add(registry, 200)
    clock.now = 10_000
    assert is_known(registry, "0")
    add(registry, 1, first=200)
    assert not is_known(registry, "0")
    assert is_known(registry, "1")


def test_there_is_a_bound_whatever_anyone_asks(registry):
    add(registry, 6000)
    assert not is_known(registry, "999")
    assert is_known(registry, "1000")


def test_another_s_completion_is_unknown(registry):
    add(registry, 1)
    assert not is_known(registry, "0", OTHER)
