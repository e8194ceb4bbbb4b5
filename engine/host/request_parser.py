"""HTTP/1.1 requests as bytes come: httptools' parser, stricter than llhttp is by itself.

A head is told in one piece once it is there, so that what is wrong about it is refused before
anybody acts on it.
"""

from typing import NoReturn

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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
