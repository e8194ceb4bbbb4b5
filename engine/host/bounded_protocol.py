"""HTTP/1.1 with limits of size: uvicorn itself takes headers and needless bodies of any length."""

import asyncio
import logging
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from engine.host.request_parser import RequestParser

_MOST_WAITING = 8  # requests on one connection, behind the one that is being answered
_MOST_NEEDLESS = 2**18  # bytes of a body, that are read although its request is answered
_LINGER_S = 1.0  # in which who goes on with such a body may read the answer

CONNECTIONS_LOG = "foregram.host.connections"
_log = logging.getLogger(CONNECTIONS_LOG)


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
