"""What of failures comes into the log."""

from engine.errors import InputError, NoSpaceError
from engine.host.failures import FailureLog


def test_failures_of_one_code_have_a_line_now_and_then_which_counts_the_others(caplog):
    now = [0.0]
    log = FailureLog(lambda: now[0])
    for _ in range(3):
        log.note(NoSpaceError("no room"))
    now[0] = 6.0
    log.note(NoSpaceError("no room"))
    first, second = caplog.messages
    assert first == "a completion failed: no_space: no room"
    assert second.endswith("(and 2 more since the last line)")


def test_what_a_client_did_wrong_is_not_the_logs(caplog):
    FailureLog().note(InputError("there is no line 7 in a text of a user"))
    assert not caplog.messages
