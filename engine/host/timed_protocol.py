"""HTTP/1.1 with time limits: whoever is slower than any honest client loses its connection.

uvicorn itself waits for ever for a handshake, for headers, for a body, and for a client that does
not read. Each end concerns one connection alone, and leaves a line in the log.
"""

import asyncio
from typing import Any

from engine.host.bounded_protocol import BoundedProtocol

HANDSHAKE_S = 15.0  # for TLS
HEADERS_S = 15.0  # from the beginning of a connection, or of a further request, to the last header
BODY_S = 120.0  # 32 MiB at 2 Mbit/s
GOODBYE_S = 2.0  # of TLS, which a client may leave unanswered
UNREAD_S = 30.0  # in which a client takes nothing of what is written for it
_LOOK_S = 1.0
_QUIET_PART = 0.75  # of the connections that there may be; beyond, those go that wait for nothing
_MOST_BYTES = 2**16  # of writes that are held back


class GatheredWrites(asyncio.Transport):
    """What a connection's protocol uses of `transport`."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._gathered = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write at the end of this turn."""
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered += data
        if len(self._gathered) > _MOST_BYTES:
            self._flush()

    def close(self) -> None:
        """Close once all is written. A second time, TLS would lose its end of the connection."""
        if not self.is_closing():
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Close at once; what was not written is lost."""
        self._gathered.clear()
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Bytes that nobody took yet."""
        return len(self._gathered) + self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Whether it is, or was, closed."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Receive nothing for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - asyncio's
        """What the system says of the connection."""
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._transport.write(gathered)


class TimedProtocol(BoundedProtocol):
    """One connection, which is looked at every now and then."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - uvicorn's
        """As uvicorn makes it, when a connection is accepted."""
        super().__init__(**given)
        self._accepted_at = self.loop.time()
        self._headers_since: float | None = None  # None: no request is on its way
        self._body_since: float | None = None
        self._unread_since: float | None = None
        self._num_unread = 0  # bytes, at the last look
        self.heard_at = self._accepted_at  # when anything came
        self._looking = self.loop.call_later(_LOOK_S, self._look)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Wait for the first request."""
        super().connection_made(GatheredWrites(transport, self.loop))
        self._headers_since = self.loop.time()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._looking.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note when a request begins."""
        self.heard_at = self.loop.time()
        if self.is_between and not self.parser.is_in_body and self._headers_since is None:
            self._headers_since = self.loop.time()
        super().data_received(data)
        self._follow()

    def on_message_complete(self) -> None:
        """A request is all there: one that is answered already is followed by another, or none."""
        super().on_message_complete()
        if self.is_between:
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _make_room(self) -> None:
        """End the connection that was quiet for longest, where there are nearly too many.

        So those who ask for something find a place, whoever else only holds one.
        """
        most = self.limit_concurrency
        if most is None or len(self.connections) <= _QUIET_PART * most:
            return
        others = (one for one in self.connections if isinstance(one, TimedProtocol))
        quiet = [one for one in others if one is not self and one.is_quiet]
        if quiet:
            min(quiet, key=lambda one: one.heard_at).end("there are many")

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way on it, and it was not ended yet."""
        return self.is_connected and self.is_between and not self.transport.is_closing()

    def end_unfinished(self) -> None:
        """End it if a request is on its way here that is not all there."""
        self._follow()
        if self._body_since is not None:
            self.end("the host stops")

    def _follow(self) -> None:
        """Note which part of a request is awaited."""
        if not self.is_between:
            self._headers_since = None
        if not self.parser.is_in_body:
            self._body_since = None
        elif self._body_since is None:
            self._body_since = self.loop.time()

    def _look(self) -> None:
        limit = self._exceeded()
        if limit is None:
            self._looking = self.loop.call_later(_LOOK_S, self._look)
        else:
            self.end(limit)

    def _exceeded(self) -> str | None:
        """Which limit is exceeded, in words."""
        now = self.loop.time()
        if not self.is_connected:
            is_late = now - self._accepted_at > HANDSHAKE_S
            return f"no TLS handshake within {HANDSHAKE_S:g} s" if is_late else None
        self._follow()
        if _is_over(self._headers_since, now, HEADERS_S):
            return f"its request had no end of headers within {HEADERS_S:g} s"
        if _is_over(self._body_since, now, BODY_S):
            return f"its request had no end of body within {BODY_S:g} s"
        self._measure_unread(now)
        if _is_over(self._unread_since, now, UNREAD_S):
            return f"it did not read what was written to it within {UNREAD_S:g} s"
        return None

    def _measure_unread(self, now: float) -> None:
        """What is not read neither shrinks nor is gone in between, and does not come to its close."""
        num_unread = self.transport.get_write_buffer_size()
        is_idle = num_unread == 0 and not self.transport.is_closing()
        if is_idle or num_unread < self._num_unread:
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        self._num_unread = num_unread


def _is_over(since: float | None, now: float, limit_s: float) -> bool:
    return since is not None and now - since > limit_s
