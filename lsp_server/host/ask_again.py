"""Whether the editor is to ask again: what it asked for found no host, and now there is one."""

from collections.abc import Callable

from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason


class AskAgain:
    """Remembers that a suggestion is owed, and has it asked for once when a host is ready.

    A request that still waits then is answered itself. What was asked again and brought nothing is
    not asked a third time before somebody types: it may be what ends the host.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._num_open = 0
        self._is_owed = False
        self._was_told = False

    def opened(self) -> None:
        """A request is being answered."""
        self._num_open += 1

    def closed(self, reason: Reason | None, *, waited: bool, is_ready: bool) -> None:
        """It is answered. `waited`: there was no host when it came; `is_ready`: there is one now."""
        self._num_open -= 1
        is_outdated = reason is Reason.SUPERSEDED and waited
        if reason in HOST_TROUBLES or is_outdated or (reason in WITHDRAWN and not is_ready):
            self._is_owed = True
        elif is_ready and reason not in WITHDRAWN:
            self._is_owed = self._was_told = False
        if is_outdated and is_ready:
            self.host_is_ready()

    def host_is_ready(self) -> None:
        """Have it asked for again, unless a request is under way that brings it."""
        if self._is_owed and not self._was_told and self._num_open == 0:
            self._is_owed, self._was_told = False, True
            self._tell()

    def typed(self) -> None:
        """The text is another one."""
        self._was_told = False
