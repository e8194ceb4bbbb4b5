"""HTTP/1.1 with limits that uvicorn lacks, on headers, bodies, unread answers and idle clients."""

import asyncio
import logging
import re
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 15.0  # seconds from the start of a connection or a later request to its last header
BODY_S = 120.0  # seconds for a whole body: 32 MiB at 2.3 Mbit/s
UNREAD_S = 30.0  # seconds in which a client may read nothing of its answer
_LOOK_S = 1.0  # seconds between two checks of a connection
_MOST_HEAD = 2**14  # bytes of request line and header fields; h11's default
_MOST_FIELDS = 256  # header fields in a request
_TOO_LONG = f"a request has more than {_MOST_HEAD:,} bytes of headers, or {_MOST_FIELDS} of them"
_BLANK_LINE = re.compile(rb"\n\r?\n")
_MOST_NEEDLESS = 2**18  # bytes read of a body whose request is already answered
_LINGER_S = 1.0  # seconds for a client that sends more than that to read the answer
_QUIET_PART = 0.75  # share of the allowed connections above which idle ones are closed

CONNECTIONS_LOG = "foregram.host.connections"
_log = logging.getLogger(CONNECTIONS_LOG)


class HostConnection(H11Protocol):
    """One connection, checked against its limits every `_LOOK_S`."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(**given)
        self.heard_at = self.loop.time()  # when data last arrived
        self._headers_since: float | None = None  # None while no headers are awaited
        self._body_since: float | None = None
        self._unread_since: float | None = None
        self._num_unread = 0  # bytes at the last check
        self._num_needless = 0  # bytes of a body that is not wanted

    @property
    def is_between(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr] # None at first

    @property
    def is_quiet(self) -> bool:
        """Whether it is open with no request being answered."""
        return self.is_between and not self.transport.is_closing()

    @property
    def is_in_body(self) -> bool:
        """Whether the body of a request is still incomplete."""
        return bool(self.conn.their_state is h11.SEND_BODY)

    def end(self, reason: str) -> None:
        """Abort the connection and log why."""
        sender = f" from {self.client[0]}" if self.client else ""  # a Unix socket has no address
        _log.warning("a connection%s was ended: %s", sender, reason)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Start the time limits, and make room if there are many connections."""
        super().connection_made(transport)
        self._headers_since = self.loop.time()
        self._looking = self.loop.call_later(_LOOK_S, self._look)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking, and free the last request."""
        self._looking.cancel()
        super().connection_lost(exc)
        self.cycle = None  # type: ignore[assignment] # None before the first; frees a body

    def data_received(self, data: bytes) -> None:
        """Read data within the limits."""
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
        if self.is_quiet and not self.is_in_body:
            self._await_request()

    def handle_events(self) -> None:
        """Handle events unless the head is too long: h11 bounds only an incomplete one."""
        if self.conn.their_state is h11.IDLE:
            self._drop_empty_lines()
            if _is_too_long(self.conn.trailing_data[0]):
                self.send_400_response(_TOO_LONG)
                return
        super().handle_events()

    def shutdown(self) -> None:
        """Close once: over TLS, closing twice breaks the transport."""
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer 400, or end the connection if another answer is being sent."""
        if self.conn.our_state is h11.IDLE:
            super().send_400_response(msg)
        else:
            self.end(msg)

    def _should_upgrade(self) -> bool:
        return False  # Java's own HTTP client asks for one

    def _take(self, data: bytes) -> None:
        """Skip empty lines after a body, and all data after the last request."""
        if self.transport.is_closing() or self.conn.their_state is h11.MUST_CLOSE:
            return
        if not self.is_in_body and not self.conn.trailing_data[0]:
            data = data.lstrip(b"\r\n")
        if data:  # h11 takes empty data for the end of the connection
            super().data_received(data)

    def _drop_empty_lines(self) -> None:
        received = self.conn.trailing_data[0]
        if received.startswith((b"\r", b"\n")):
            self.conn = h11.Connection(h11.SERVER, _MOST_HEAD)
            if request := received.lstrip(b"\r\n"):
                self.conn.receive_data(request)

    def _await_request(self) -> None:
        """Note when the next request began; or, after a refused body, wait for one to begin."""
        if self.conn.trailing_data[0]:
            self._headers_since = self._headers_since or self.heard_at
            return
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _is_needless(self, data: bytes) -> bool:
        is_refused = self.is_between and self.is_in_body
        self._num_needless = self._num_needless + len(data) if is_refused else 0
        return self._num_needless > _MOST_NEEDLESS

    def _make_room(self) -> None:
        """Near the limit, end the connection idle for longest, so that active clients get in."""
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
        self._body_since = (self._body_since or self.loop.time()) if self.is_in_body else None

    def _look(self) -> None:
        now = self.loop.time()
        self._follow()
        self._measure_unread(now)
        for since, limit_s, what in (
            (self._headers_since, HEADERS_S, "its request had no end of headers"),
            (self._body_since, BODY_S, "its request had no end of body"),
            (self._unread_since, UNREAD_S, "it did not read what was written to it"),
        ):
            if since is not None and now - since > limit_s:
                self.end(f"{what} within {limit_s:g} s")
                return
        self._looking = self.loop.call_later(_LOOK_S, self._look)

    def _measure_unread(self, now: float) -> None:
        """Note since when the write buffer neither shrinks nor empties, or the close hangs."""
        num_unread = self.transport.get_write_buffer_size()
        is_idle = num_unread == 0 and not self.transport.is_closing()
        is_read = is_idle or num_unread < self._num_unread
        self._unread_since = None if is_read else self._unread_since or now
        self._num_unread = num_unread


def _is_too_long(received: bytes) -> bool:
    head = _BLANK_LINE.split(received, maxsplit=1)[0].rstrip(b"\r\n")
    return len(head) > _MOST_HEAD or head.count(b"\n") > _MOST_FIELDS
