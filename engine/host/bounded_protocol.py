"""HTTP/1.1 with limits of size: uvicorn itself takes headers and needless bodies of any length.

Its parser is httptools', stricter than llhttp is by itself. A head is told in one piece once it is
there, so that what is wrong about it is refused before anybody acts on it.
"""

import asyncio
import logging
from typing import Any, NoReturn

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

_MOST_WAITING = 8  # requests on one connection, behind the one that is being answered
_MOST_NEEDLESS = 2**18  # bytes of a body, that are read although its request is answered
_LINGER_S = 1.0  # in which who goes on with such a body may read the answer

CONNECTIONS_LOG = "foregram.host.connections"
_log = logging.getLogger(CONNECTIONS_LOG)
_MOST_HEAD = 2**16  # bytes of headers, and of whatever else of a request is no body
_MOST_HEADERS = 256
_TOO_LONG = f"a request had more than {_MOST_HEAD} bytes of headers, or {_MOST_HEADERS} of them"
_OF_UPGRADES = (b"upgrade", b"connection", b"http2-settings")


class RequestParser:
    """The requests of one connection."""

    def __init__(self, events: HttpToolsProtocol) -> None:
        """Tell `events` of them, as httptools would."""
        self.is_in_body = False  # what comes next is a part of a request's body
        self.refusal = ""  # why there are no more requests
        self._events = events
        self._parser = self._new_parser()
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._num_head = 0  # bytes since the last request, or since some of a body came

    def feed_data(self, data: bytes) -> None:
        """Read on. Raises HttpParserError, where nothing can be read any more."""
        self._num_head += len(data)
        while data:
            try:
                self._parser.feed_data(data)
                break
            except HttpParserUpgrade as upgrade:
                data = self._without_upgrade() + data[upgrade.args[0] :]
        if self._num_head > _MOST_HEAD:
            self.refuse(_TOO_LONG)

    def close(self) -> None:
        """Nothing comes any more. httptools and this are a circle, which would hold bodies."""
        del self._parser

    def refuse(self, reason: str) -> NoReturn:
        """Read no further."""
        self.refusal = reason
        raise HttpParserError(reason)

    def get_method(self) -> bytes:
        """Of the request that was told of last."""
        return self._parser.get_method()

    def get_http_version(self) -> str:
        """Likewise."""
        return self._parser.get_http_version()

    def should_keep_alive(self) -> bool:
        """Whether another request may follow it."""
        return self._parser.should_keep_alive()

    def should_upgrade(self) -> bool:
        """Whether another protocol follows it: none is spoken here."""
        return False

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url, self._headers = b"", []

    def on_url(self, url: bytes) -> None:
        """Some of its path came."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header came. One that stands behind a body could pass by whoever checks headers."""
        if not self.is_in_body:
            self._headers.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._check()
        if self._parser.should_upgrade():
            return
        self.is_in_body = True
        self._events.on_message_begin()
        self._events.on_url(self._url)
        for name, value in self._headers:
            self._events.on_header(name, value)
        self._events.on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body came."""
        self._num_head = 0
        self._events.on_body(body)

    def on_message_complete(self) -> None:
        """It is all there."""
        if self._parser.should_upgrade():
            return
        self.is_in_body, self._num_head = False, 0
        self._events.on_message_complete()

    def _new_parser(self) -> HttpRequestParser:
        parser = HttpRequestParser(self)
        # Or who sends more than a last request gets no answer to that.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _check(self) -> None:
        """Refuse what is too long, or what proxies and hosts understand in different ways."""
        size = len(self._url) + sum(len(name) + len(value) for name, value in self._headers)
        if size > _MOST_HEAD or len(self._headers) > _MOST_HEADERS:
            self.refuse(_TOO_LONG)
        num_hosts = sum(name == b"host" for name, _ in self._headers)
        if num_hosts > 1 or (num_hosts == 0 and self.get_http_version() != "1.0"):
            self.refuse("a request has to have one Host header")
        if not self._url.startswith(b"/"):
            self.refuse("a request has to name a path")
        encodings = [value for name, value in self._headers if name == b"transfer-encoding"]
        if encodings and b",".join(encodings).lower() != b"chunked":
            self.refuse("the only transfer encoding here is chunked")

    def _without_upgrade(self) -> bytes:
        """The head of a request for another protocol, without its wish, to be read once more.

        Java's own client wishes for HTTP/2 whenever it connects, and httptools passes over the
        body of such a request.
        """
        first = b"%s %s HTTP/%s" % (self.get_method(), self._url, self.get_http_version().encode())
        kept = [one for one in self._headers if one[0] not in _OF_UPGRADES]
        if not self.should_keep_alive():
            kept.append((b"connection", b"close"))
        self._parser = self._new_parser()
        lines = (first, *(b"%s: %s" % one for one in kept), b"\r\n")
        return b"\r\n".join(lines)


class _WithoutChunks(RequestResponseCycle):
    """An answer to HTTP/1.0: one of no known length ends with its connection."""

    async def send(self, message: Any) -> None:  # noqa: ANN401 - ASGI's
        """As uvicorn does, which sends chunks to everyone."""
        if message["type"] == "http.response.start":
            self._is_open = all(name.lower() != b"content-length" for name, _ in message["headers"])
            self.chunked_encoding = False if self._is_open else None
        elif self._is_open:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    parser: RequestParser  # type: ignore[assignment] # stricter than uvicorn's, with its methods

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """As uvicorn makes it, when a connection is accepted."""
        super().__init__(config, server_state, app_state, _loop)
        self.parser = RequestParser(self)
        self._num_needless = 0  # bytes of a body that nobody waits for
        self._unanswered: list[RequestResponseCycle] = []

    @property
    def is_connected(self) -> bool:
        """Whether it is; before, TLS shakes hands."""
        return self in self.connections

    @property
    def is_between(self) -> bool:
        """Whether no request is being answered, or waits for it."""
        return all(one.response_complete for one in self._unanswered)

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
        for one in self._unanswered:
            if not one.response_complete:
                one.disconnected = True
                one.message_event.set()
        self._unanswered.clear()
        self.parser.close()
        super().connection_lost(exc)
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment] # as before the first one; it holds a body

    def data_received(self, data: bytes) -> None:
        """Read on, within the limits."""
        if self._is_needless(data):
            self.transport.pause_reading()
            self.loop.call_later(_LINGER_S, self.transport.abort)
            return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """A request is to be answered, when those before it are."""
        if len(self.pipeline) >= _MOST_WAITING:
            self.parser.refuse(f"more than {_MOST_WAITING} requests waited for an answer")
        super().on_headers_complete()
        if self.parser.get_http_version() == "1.0":
            self.cycle.__class__ = _WithoutChunks
        self._unanswered = [one for one in self._unanswered if not one.response_complete]
        self._unanswered.append(self.cycle)

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong, where that does not stand in the middle of another answer."""
        reason = self.parser.refusal or msg
        if self.is_between:
            super().send_400_response(reason)
        else:
            self.end(reason)

    def _is_needless(self, data: bytes) -> bool:
        """Whether so much came of a body whose request was refused that it is read no further."""
        if not (self.is_between and self.parser.is_in_body):
            self._num_needless = 0
            return False
        self._num_needless += len(data)
        return self._num_needless > _MOST_NEEDLESS
