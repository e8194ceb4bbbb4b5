"""The connections to a port or a socket file: how many, who, how long one may stay uninitialized.

Web pages and other users reach a port as well. What does not speak LSP from its first byte on, or
does not initialize in time and with the token, is disconnected.
"""

import asyncio
import gc
import hmac
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from pygls.exceptions import JsonRpcException

from lsp_server.transport.framing import MessageReader, NotLspError
from lsp_server.transport.protocol import DocumentServer

TOKEN_KEY = "connectionToken"  # in initializationOptions
_LOG = logging.getLogger(__name__)
MAX_FIRST_BYTES = 2**20  # of `initialize`, and of what comes before it
MAX_MESSAGE_BYTES = 2**27  # of the largest document, six bytes for each character
_MAX_CLIENTS = 64
_MAX_UNINITIALIZED = 16  # connections
_INITIALIZE_S = 10.0  # which each of these has
_COLLECT_S = 1.0  # after a client has gone


@dataclass(frozen=True, slots=True)
class Authentication:
    """The token that a client has to send in `initialize`; `succeeded` is called when it did.

    Without a token only the user can connect, as it is with pipes and socket files.
    """

    token: str | None = None
    succeeded: Callable[[], None] = lambda: None

    @property
    def is_public(self) -> bool:
        """Whether others can reach the server: then what a client asks is not what its user wants."""
        return self.token is not None

    def refusal(self, options: object) -> str | None:
        """Why a client with these options is rejected; None if it is not."""
        if self.token is None:
            return None
        given = options.get(TOKEN_KEY) if isinstance(options, Mapping) else None
        if given is None:
            return f"initializationOptions.{TOKEN_KEY} is missing: the server's terminal names it"
        shown = str(given).encode("utf-8", "replace")
        if not hmac.compare_digest(shown, self.token.encode()):
            return f"initializationOptions.{TOKEN_KEY} is not this server's"
        return None


OPEN = Authentication()


class Connections:
    """A server for each connection. Where there is a token, each client has to send it."""

    def __init__(
        self,
        create_server: Callable[[Authentication], DocumentServer],
        token: str | None = None,
    ) -> None:
        self._create_server = create_server
        self._token = token
        self._uninitialized: dict[asyncio.Timeout, None] = {}  # the oldest first
        self._clients: set[asyncio.Timeout] = set()

    async def serve(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until one side ends it."""
        # Ctrl-C cancels each connection, and asyncio would print a stack for it.
        with suppress(asyncio.CancelledError, TimeoutError):
            try:
                async with asyncio.timeout(_INITIALIZE_S) as timeout:
                    self._add(timeout)
                    await self._serve(timeout, stream, writer)
            finally:
                writer.close()
                # What a client had is a circle, which Python would keep for hours.
                asyncio.get_running_loop().call_later(_COLLECT_S, gc.collect)

    def _add(self, timeout: asyncio.Timeout) -> None:
        """Take one more connection; where too many have not initialized, the oldest has to go."""
        if len(self._uninitialized) >= _MAX_UNINITIALIZED:
            oldest = next(iter(self._uninitialized))
            del self._uninitialized[oldest]
            if not oldest.expired():
                oldest.reschedule(0.0)
        self._uninitialized[timeout] = None

    async def _serve(
        self, timeout: asyncio.Timeout, stream: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        reader = MessageReader(stream, MAX_FIRST_BYTES)

        def succeeded() -> None:
            if timeout in self._uninitialized and not timeout.expired():
                del self._uninitialized[timeout]
                self._clients.add(timeout)
                timeout.reschedule(None)
                reader.max_bytes = MAX_MESSAGE_BYTES

        try:
            if len(self._clients) < _MAX_CLIENTS:
                server = self._create_server(Authentication(self._token, succeeded))
                server.protocol.set_writer(writer)
                await serve(server, reader)
        finally:
            self._uninitialized.pop(timeout, None)
            self._clients.discard(timeout)


async def serve(server: DocumentServer, reader: MessageReader) -> int:
    """Handle messages until the client exits or its stream ends; the exit status as LSP has it."""
    try:
        await _handle_messages(server, reader)
    except SystemExit as exit_request:
        return int(exit_request.code or 0)
    except NotLspError as error:
        _LOG.error("what came was not LSP: %s", error)
        return 1
    except (ConnectionError, asyncio.IncompleteReadError):
        return 1  # it left in the middle of a message
    finally:
        await server.leave()
        server.thread_pool.shutdown(wait=False, cancel_futures=True)
    return 0


async def _handle_messages(server: DocumentServer, reader: MessageReader) -> None:
    """Hand each message to the protocol, one after the other, until the stream ends.

    What fails may have been a change of any document. pygls would look for messages within messages:
    an object in the params that has a key "jsonrpc" would be read as one, and the request around it
    never answered.
    """
    while (body := await reader.body()) is not None:
        message: object = None
        try:
            message = _message(body)
            server.protocol.handle_data(message)
        except Exception as error:  # noqa: BLE001 - whatever one message meets, the next is read
            if not isinstance(message, dict) or "method" in message:
                server.protocol.lose_step()
            server.report_server_error(error, JsonRpcException)
        await asyncio.sleep(0)  # however many have arrived, what this one began goes first


def _message(body: bytes) -> object:
    """What a body says. A byte that is no UTF-8, as a file may hold, is one character.

    msgspec takes a third of the time, and no half of a surrogate pair.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(body.decode("utf-8-sig", "surrogateescape"))
