"""What one principal may hold and ask for, and how it hears of that."""

from contextlib import ExitStack

import pytest

from engine.errors import ConfigurationError
from engine.host.protocol import MAX_ANSWER_TOKENS
from engine.host.quotas import QuotaError, QuotaKeeper, Quotas
from tests.support.stopped_clock import StoppedClock

ADA, EVE, NAMELESS = "ada", "eve", ""


@pytest.fixture
def clock():
    return StoppedClock(1000.0)


def num_let_through(limits, principal):
    """How many requests are let through at once, one after the other."""
    for number in range(100_000):
        try:
            with limits.request_of(principal):
                pass
        except QuotaError:
            return number
    raise AssertionError("no end of it")


def test_a_burst_is_let_through_and_then_the_rate_and_others_have_their_own(clock):
    limits = QuotaKeeper(["requests=2"], clock)
    assert num_let_through(limits, EVE) == 6
    with (
        pytest.raises(QuotaError, match="you may send 2 requests a second here") as error,
        limits.request_of(EVE),
    ):
        pass
    assert error.value.retry_after_s == pytest.approx(0.5)
    assert num_let_through(limits, ADA) == 6
    clock.now += 0.5
    assert num_let_through(limits, EVE) == 1
    clock.now += 3600
    assert num_let_through(limits, EVE) == 6


def test_large_bodies_count_as_several_requests_and_the_largest_is_let_through(clock):
    limits = QuotaKeeper(clock=clock)
    with limits.request_of(EVE, 32 * 1024 * 1024):
        pass
    with (
        pytest.raises(QuotaError, match="large ones count as several"),
        limits.request_of(EVE, 32 * 1024 * 1024),
    ):
        pass
    with QuotaKeeper(["requests=1"], clock).request_of(EVE, 32 * 1024 * 1024):
        pass


def test_requests_that_are_not_answered_yet_are_counted(clock):
    limits = QuotaKeeper(["waiting=3", "running=2"], clock)
    with ExitStack() as requests:
        for _ in range(5):
            requests.enter_context(limits.request_of(EVE))
        with pytest.raises(QuotaError, match="5 of your requests wait here for an answer"):
            requests.enter_context(limits.request_of(EVE))
        with limits.request_of(ADA):
            pass
    with limits.request_of(EVE):
        pass


def test_bodies_that_are_not_answered_yet_are_bounded_together(clock):
    large = 30_000_000
    limits = QuotaKeeper(["megabytes=200", "requests=1000"], clock)
    with ExitStack() as requests:
        for _ in range(2):
            requests.enter_context(limits.request_of(EVE, large))
        with pytest.raises(QuotaError, match="60 MB of your requests wait here for an answer"):
            requests.enter_context(limits.request_of(EVE))
        with limits.request_of(ADA, large):
            pass
    with limits.request_of(EVE, large):
        pass


def test_no_typist_on_a_private_socket_ever_notices_a_limit(clock):
    """Ten keys a second in four editors, each with a completion, a prefetch and a sync."""
    limits = QuotaKeeper(clock=clock)
    for _ in range(10 * 60):
        clock.now += 0.1
        with ExitStack() as requests:
            for _ in range(4 * 3):
                requests.enter_context(limits.request_of(NAMELESS))
    named = QuotaKeeper(clock=clock)
    for _ in range(10 * 60):
        clock.now += 0.1
        with ExitStack() as requests:
            for _ in range(5):
                requests.enter_context(named.request_of(ADA))


def test_a_token_without_a_name_may_be_a_whole_teams():
    limits = QuotaKeeper()
    assert limits.of(ADA) == Quotas()
    assert limits.of(NAMELESS).clients >= 64 * 4
    assert limits.of(NAMELESS).tokens == MAX_ANSWER_TOKENS


def test_quotas_are_given_by_name():
    limits = QuotaKeeper(["buffers=7", "tokens=64"])
    assert limits.of(ADA) == Quotas(buffers=7, tokens=64)
    assert (limits.of(NAMELESS).buffers, limits.of(NAMELESS).tokens) == (7, 64)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("files=3", "there is no quota 'files'; there are: clients, buffers, megabytes, tokens"),
        ("buffers", "the quota buffers has to be a whole number above 0, not ''"),
        ("buffers=-1", "whole number above 0, not '-1'"),
        ("buffers=1e9", "whole number"),
        ("buffers=9999999999", "whole number"),
        ("buffers=0", "whole number above 0, not '0'"),
    ],
)
def test_what_is_no_quota_is_refused(given, reason):
    with pytest.raises(ConfigurationError, match=reason):
        QuotaKeeper([given])


@pytest.mark.parametrize(("seconds", "header"), [(0.01, "1"), (1.0, "1"), (4.2, "5")])
def test_a_refusal_says_in_whole_seconds_when_to_ask_again(seconds, header):
    error = QuotaError("too many", seconds)
    assert error.headers == {"Retry-After": header}
    assert (error.problem.code, error.problem.message) == ("quota", "too many")
