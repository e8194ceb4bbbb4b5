"""HTTP/1.1 with limits of size and of time, for each connection alone.

h11 bounds the headers and reads one request after the other. uvicorn itself waits for ever for
headers, for a body, and for a client that does not read; it takes needless bodies of any length.
Each end leaves a line in the log.
"""

import asyncio
import logging
import re
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 15.0  # from the beginning of a connection, or of a further request, to the last header
BODY_S = 120.0  # 32 MiB at 2 Mbit/s
UNREAD_S = 30.0  # in which a client takes nothing of what is written for it
_LOOK_S = 1.0
_MOST_HEAD = 2**14  # bytes of a request line and its header fields, as h11 has it
_MOST_FIELDS = 256  # of a head
_TOO_LONG = f"a request has more than {_MOST_HEAD:,} bytes of headers, or {_MOST_FIELDS} of them"
_BLANK_LINE = re.compile(rb"\n\r?\n")
_MOST_NEEDLESS = 2**18  # bytes of a body, that are read although its request is answered
_LINGER_S = 1.0  # for a client that goes on with such a body to read the answer
_QUIET_PART = 0.75  # of the connections that there may be; beyond, those go that wait for nothing

CONNECTIONS_LOG = "foregram.host.connections"
_log = logging.getLogger(CONNECTIONS_LOG)


class HostConnection(H11Protocol):
    """One connection, which is looked at every now and then."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - uvicorn's
        """As uvicorn makes it, when a connection is accepted."""
        super().__init__(**given)
        self.heard_at = self.loop.time()  # when anything came
        self._headers_since: float | None = None  # None: no request is on its way
        self._body_since: float | None = None
        self._unread_since: float | None = None
        self._num_unread = 0  # bytes, at the last look
        self._num_needless = 0  # bytes of a body that nobody waits for
        self._looking: asyncio.TimerHandle | None = None

    @property
    def is_between(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr] # None at first

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way on it, and it was not ended yet."""
        return self.is_between and not self.transport.is_closing()

    def end(self, reason: str) -> None:
        """End the connection at once, with a line in the log."""
        sender = f" from {self.client[0]}" if self.client else ""  # none on a socket
        _log.warning("a connection%s was ended: %s", sender, reason)
        self.transport.abort()

    def end_unfinished(self) -> None:
        """End it if a request is on its way here that is not all there."""
        if self._is_in_body:
            self.end("the host stops")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Wait for the first request."""
        super().connection_made(transport)
        self._headers_since = self.loop.time()
        self._looking = self.loop.call_later(_LOOK_S, self._look)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)
        self.cycle = None  # type: ignore[assignment] # as before the first one; it holds a body

    def data_received(self, data: bytes) -> None:
        """Read on, within the limits."""
        if self.transport.is_closing():
            return
        self.heard_at = self.loop.time()
        if self._is_needless(data):
            self.transport.pause_reading()
            self.loop.call_later(_LINGER_S, self.transport.abort)
            return
        for start in range(0, len(data), _MOST_HEAD):
            self._take(data[start : start + _MOST_HEAD])
        self._follow()
        if self.is_quiet and not self._is_in_body:
            self._await_request()

    def handle_events(self) -> None:
        """Read on, unless a head has come that is too long: h11 bounds only one without an end."""
        if self.conn.their_state is h11.IDLE:
            self._drop_empty_lines()
            if _is_too_long(self.conn.trailing_data[0]):
                self.send_400_response(_TOO_LONG)
                return
        super().handle_events()

    def shutdown(self) -> None:
        """Close it once: over TLS a second time breaks the transport."""
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong, where that does not stand in the middle of another answer."""
        if self.conn.our_state is h11.IDLE:
            super().send_400_response(msg)
        else:
            self.end(msg)

    def _should_upgrade(self) -> bool:
        """No other protocol is spoken here, whatever a client wishes for: Java's own does."""
        return False

    def _take(self, data: bytes) -> None:
        """Leave out empty lines behind a body, and what follows the last request."""
        if self.transport.is_closing() or self.conn.their_state is h11.MUST_CLOSE:
            return
        if not self._is_in_body and not self.conn.trailing_data[0]:
            data = data.lstrip(b"\r\n")
        if data:  # without any, h11 would take it for the end of the connection
            super().data_received(data)

    def _drop_empty_lines(self) -> None:
        """Empty lines that came at once with the request before are none of the next one."""
        received = self.conn.trailing_data[0]
        if received.startswith((b"\r", b"\n")):
            self.conn = h11.Connection(h11.SERVER, _MOST_HEAD)
            if request := received.lstrip(b"\r\n"):
                self.conn.receive_data(request)

    def _await_request(self) -> None:
        """A further request has begun; or else a body has ended whose request was refused."""
        if self.conn.trailing_data[0]:
            self._headers_since = self._headers_since or self.heard_at
            return
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    @property
    def _is_in_body(self) -> bool:
        return bool(self.conn.their_state is h11.SEND_BODY)

    def _is_needless(self, data: bytes) -> bool:
        """Whether so much came of a body whose request was refused that it is read no further."""
        is_refused = self.is_between and self._is_in_body
        self._num_needless = self._num_needless + len(data) if is_refused else 0
        return self._num_needless > _MOST_NEEDLESS

    def _make_room(self) -> None:
        """End the connection that was quiet for longest, where there are nearly too many.

        So a client that has a request finds a place, however many others only hold one.
        """
        most = self.limit_concurrency
        if most is None or len(self.connections) <= _QUIET_PART * most:
            return
        others = (one for one in self.connections if isinstance(one, HostConnection))
        quiet = [one for one in others if one is not self and one.is_quiet]
        if quiet:
            min(quiet, key=lambda one: one.heard_at).end("there are many")

    def _follow(self) -> None:
        if not self.is_between:
            self._headers_since = None
        self._body_since = (self._body_since or self.loop.time()) if self._is_in_body else None

    def _look(self) -> None:
        limit = self._exceeded(self.loop.time())
        if limit is None:
            self._looking = self.loop.call_later(_LOOK_S, self._look)
        else:
            self.end(limit)

    def _exceeded(self, now: float) -> str | None:
        self._follow()
        self._measure_unread(now)
        for since, limit_s, what in (
            (self._headers_since, HEADERS_S, "its request had no end of headers"),
            (self._body_since, BODY_S, "its request had no end of body"),
            (self._unread_since, UNREAD_S, "it did not read what was written to it"),
        ):
            if since is not None and now - since > limit_s:
                return f"{what} within {limit_s:g} s"
        return None

    def _measure_unread(self, now: float) -> None:
        """What is not read neither shrinks nor is gone in between, and does not come to its close."""
        num_unread = self.transport.get_write_buffer_size()
        is_idle = num_unread == 0 and not self.transport.is_closing()
        is_read = is_idle or num_unread < self._num_unread
        self._unread_since = None if is_read else self._unread_since or now
        self._num_unread = num_unread


def _is_too_long(received: bytes) -> bool:
    head = _BLANK_LINE.split(received, maxsplit=1)[0].rstrip(b"\r\n")
    return len(head) > _MOST_HEAD or head.count(b"\n") > _MOST_FIELDS
