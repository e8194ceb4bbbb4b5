"""HTTP/1.1 with limits of size: uvicorn itself takes headers and needless bodies of any length.

httptools reads the requests: h11 takes a fifth of the host's time with 64 people.
"""

import asyncio
import logging
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

_MOST_HEAD = 2**16  # bytes of headers, and of whatever else of a request is no body
_MOST_NEEDLESS = 2**18  # bytes of a body, that are read although its request is answered
_LINGER_S = 1.0  # in which who goes on with such a body may read the answer

CONNECTIONS_LOG = "foregram.host.connections"
_log = logging.getLogger(CONNECTIONS_LOG)


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """As uvicorn makes it, when a connection is accepted."""
        super().__init__(config, server_state, app_state, _loop)
        self._is_in_body = False  # of the request that is being read
        self._num_head = 0  # bytes since the end of the last one, or since some of its body came
        self._num_needless = 0  # bytes of a body that nobody waits for
        self._answered: RequestResponseCycle | None = None  # the request that is being answered

    @property
    def is_connected(self) -> bool:
        """Whether it is; before, TLS shakes hands."""
        return self in self.connections

    @property
    def is_between(self) -> bool:
        """Whether no request is being answered, or waits for it."""
        return self._latest is None or self._latest.response_complete

    @property
    def awaits_body(self) -> bool:
        """Whether a request is being answered that is not all there."""
        return not self.is_between and self.cycle.more_body

    @property
    def sender(self) -> str:
        """Whose connection it is, for a sentence; empty on a socket."""
        return f" from {self.client[0]}" if self.client else ""

    def end(self, reason: str) -> None:
        """End the connection at once, with a line in the log."""
        _log.warning("a connection%s was ended: %s", self.sender, reason)
        if self.is_connected:  # else asyncio ends the handshake
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over. Of several requests that came at once, uvicorn tells only the last one."""
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, within the limits."""
        if self._is_needless(data):
            self.transport.pause_reading()
            self.loop.call_later(_LINGER_S, self.transport.abort)
            return
        self._num_head += len(data)
        super().data_received(data)
        if self._num_head > _MOST_HEAD and not self.transport.is_closing():
            self._refuse_head()

    def on_headers_complete(self) -> None:
        """Its body begins, if it has one."""
        self._is_in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body came."""
        self._num_head = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is all there."""
        self._is_in_body, self._num_head = False, 0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The latest request; uvicorn's own type of it does not say that there may be none."""
        return self.cycle

    def _is_needless(self, data: bytes) -> bool:
        """Whether so much came of a body whose request was refused that it is read no further."""
        if not (self._latest is not None and self.is_between and self._is_in_body):
            self._num_needless = 0
            return False
        self._num_needless += len(data)
        return self._num_needless > _MOST_NEEDLESS

    def _refuse_head(self) -> None:
        reason = f"a request had more than {_MOST_HEAD} bytes of headers"
        if not self.is_between:  # another is being answered, or these stand behind its body
            self.end(reason)
            return
        _log.warning("a connection%s was ended: %s", self.sender, reason)
        self.send_400_response(reason)
