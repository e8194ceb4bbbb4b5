"""Whether the editor should repeat a request: it found no host, and now there is one."""

from collections.abc import Callable

from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason


class Retry:
    """Remembers that a suggestion is missing, and requests it once when a host is ready.

    A request that still waits then is answered itself. One that was repeated in vain is not
    repeated again before the user types: it may be what crashes the host.
    """

    def __init__(self, retry: Callable[[], None]) -> None:
        self._retry = retry
        self._num_open = 0
        self._is_due = False
        self._has_retried = False

    def began(self) -> None:
        """A request is being answered."""
        self._num_open += 1

    def ended(self, reason: Reason | None, *, waited: bool, is_ready: bool) -> None:
        """It is answered. `waited`: there was no host when it came; `is_ready`: there is one now."""
        self._num_open -= 1
        is_outdated = reason is Reason.SUPERSEDED and waited
        if reason in HOST_TROUBLES or is_outdated or (reason in WITHDRAWN and not is_ready):
            self._is_due = True
        elif is_ready and reason not in WITHDRAWN:
            self._is_due = self._has_retried = False
        if is_outdated and is_ready:
            self.host_is_ready()

    def host_is_ready(self) -> None:
        """Have the request repeated, unless one is in flight that brings the suggestion."""
        if self._is_due and not self._has_retried and self._num_open == 0:
            self._is_due, self._has_retried = False, True
            self._retry()

    def typed(self) -> None:
        """The text has changed."""
        self._has_retried = False
