"""Decides whether the editor should repeat a request that found no host."""

from collections.abc import Callable

from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason


class Retry:
    """Remembers a missing suggestion, and has it requested once when a host is ready.

    A request that still waits then needs no repetition. One repeated in vain is not repeated again
    before the user types, because it may be crashing the host.
    """

    def __init__(self, retry: Callable[[], None]) -> None:
        self._retry = retry
        self._num_open = 0
        self._is_due = False
        self._has_retried = False

    def began(self) -> None:
        """Count a request that is being answered."""
        self._num_open += 1

    def ended(self, reason: Reason | None, *, waited: bool, is_ready: bool) -> None:
        """Note an answer. `waited`: no host was ready at the request; `is_ready`: one is now."""
        self._num_open -= 1
        is_outdated = reason is Reason.SUPERSEDED and waited
        if reason in HOST_TROUBLES or is_outdated or (reason in WITHDRAWN and not is_ready):
            self._is_due = True
        elif is_ready and reason not in WITHDRAWN:
            self._is_due = self._has_retried = False
        if is_outdated and is_ready:
            self.host_is_ready()

    def host_is_ready(self) -> None:
        """Have the request repeated, unless another one is in flight."""
        if self._is_due and not self._has_retried and self._num_open == 0:
            self._is_due, self._has_retried = False, True
            self._retry()

    def typed(self) -> None:
        """Note that the text has changed."""
        self._has_retried = False
