"""What of failures comes into the log."""

import logging

from engine.errors import InputError, NoSpaceError
from engine.host.failures import RateLimitedLog
from engine.host.protocol import Problem


def test_failures_of_one_code_have_a_line_now_and_then_which_counts_the_others(caplog):
    now = [0.0]
    log = RateLimitedLog(lambda: now[0])
    for _ in range(3):
        log.failure(NoSpaceError("no room"))
    now[0] = 6.0
    log.failure(NoSpaceError("no room"))
    first, second = caplog.messages
    assert first == "a completion failed: no_space: no room"
    assert second.endswith("(and 2 more since the last line)")


def test_what_a_client_did_wrong_is_not_the_logs(caplog):
    RateLimitedLog().failure(InputError("there is no line 7 in a text of a user"))
    assert not caplog.messages


def test_refusals_have_a_line_a_minute_with_the_address_and_the_number_of_the_others(caplog):
    now = [0.0]
    log = RateLimitedLog(lambda: now[0])
    for _ in range(1_000):
        log.refusal(Problem("wrong_token", "no token of this host"), "10.0.0.5")
    log.refusal(Problem("web_page", "no web pages"), "")
    now[0] = 61.0
    log.refusal(Problem("wrong_token", "no token of this host"), "10.0.0.6")
    assert caplog.messages == [
        "a request from 10.0.0.5 was refused: no token of this host",
        "a request was refused: no web pages",
        "a request from 10.0.0.6 was refused: no token of this host"
        " (and 999 more since the last line)",
    ]


def test_what_a_refusal_quotes_is_cut(caplog):
    RateLimitedLog().refusal(Problem("wrong_host", "x" * 60_000), "")
    assert len(caplog.messages[0]) < 300


def test_a_message_of_a_library_has_a_line_a_minute(caplog):
    now = [0.0]
    logger = logging.getLogger("paced")
    logger.addFilter(RateLimitedLog(lambda: now[0]))
    for _ in range(200):
        logger.warning("Invalid HTTP request received.")
    logger.warning("another of %d", 2)
    now[0] = 61.0
    logger.warning("Invalid HTTP request received.")
    assert caplog.messages == [
        "Invalid HTTP request received.",
        "another of 2",
        "Invalid HTTP request received. (and 199 more since the last line)",
    ]
