"""A suggestion that is owed is asked for once, when a host is ready; what breaks hosts is not."""

import pytest

from lsp_server.host.retry import Retry
from lsp_server.reasons import Reason


class Asking:
    """Counts how often the editor is told to ask again."""

    def __init__(self) -> None:
        self.num_retries = 0
        self.retry = Retry(self._count)

    def _count(self) -> None:
        self.num_retries += 1

    def answered(
        self, reason: Reason | None, *, waited: bool = False, is_ready: bool = False
    ) -> None:
        self.retry.began()
        self.retry.ended(reason, waited=waited, is_ready=is_ready)


NO_HOST = (
    Reason.CANCELLED,
    Reason.DEVICE_LOST,
    Reason.HOST_FAILED,
    Reason.HOST_LOADING,
    Reason.HOST_UNREACHABLE,
    Reason.SUPERSEDED,
)
FORBIDDEN = (Reason.DISABLED, Reason.SECRET_FILE, Reason.PROSE)
ANSWERED = (None, Reason.MODEL_SAID_NOTHING, Reason.CANCELLED)


@pytest.mark.parametrize(
    ("reason", "is_ready", "num_retries"),
    [
        *((one, False, 1) for one in NO_HOST),
        *((one, False, 0) for one in FORBIDDEN),
        *((one, True, 0) for one in ANSWERED),
    ],
)
def test_what_found_no_host_is_asked_again_once_and_nothing_else(reason, is_ready, num_retries):
    asking = Asking()
    asking.answered(reason, is_ready=is_ready)
    assert asking.num_retries == 0
    asking.retry.host_is_ready()
    asking.retry.host_is_ready()
    assert asking.num_retries == num_retries


def test_a_request_that_waits_brings_what_an_earlier_one_is_owed():
    asking = Asking()
    asking.retry.began()
    asking.answered(Reason.CANCELLED)
    asking.retry.host_is_ready()
    asking.retry.ended(None, waited=True, is_ready=True)
    asking.retry.host_is_ready()
    assert asking.num_retries == 0


def test_a_request_whose_text_changed_while_it_waited_is_asked_again_at_once():
    asking = Asking()
    asking.retry.began()
    asking.retry.host_is_ready()
    asking.retry.ended(Reason.SUPERSEDED, waited=True, is_ready=True)
    assert asking.num_retries == 1


def test_what_ends_every_host_is_not_asked_a_third_time_before_somebody_types():
    asking = Asking()
    for _ in range(3):
        asking.answered(Reason.HOST_UNREACHABLE)
        asking.retry.host_is_ready()
    assert asking.num_retries == 1
    asking.retry.typed()
    asking.retry.host_is_ready()
    assert asking.num_retries == 2


def test_after_a_suggestion_the_next_host_that_ends_is_asked_again():
    asking = Asking()
    for _ in range(2):
        asking.answered(Reason.HOST_UNREACHABLE)
        asking.retry.host_is_ready()
        asking.answered(None, is_ready=True)
    assert asking.num_retries == 2
