"""The connections to a port or a socket file: how many, and how long a stranger may stay.

Web pages and other users reach a port as well. What does not speak LSP from its first byte on, or
does not initialize in time and with the secret, is hung up on.
"""

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass

from pygls.io_ import StdinAsyncReader, run_async

from lsp_server.admission import Admission
from lsp_server.framing import HEADER_BYTES, MessageReader
from lsp_server.server import ForegramServer, create_server
from lsp_server.setting_layers import Layer

MAX_FIRST_BYTES = 2**20  # of `initialize`, and of what comes before it
MAX_MESSAGE_BYTES = 2**27  # of the largest document, six bytes for each character


@dataclass(frozen=True, slots=True)
class Limits:
    """How many may be connected, and for how long those that have not initialized yet."""

    max_clients: int = 64
    max_strangers: int = 16
    stranger_s: float = 10.0


class Connections:
    """A server for each connection. With a token each client has to show it."""

    line_limit = HEADER_BYTES

    def __init__(
        self, command_line: Layer, token: str | None = None, limits: Limits = Limits()
    ) -> None:
        self._command_line = command_line
        self._token = token
        self._limits = limits
        self._strangers: dict[asyncio.Timeout, None] = {}  # who came first stands first
        self._clients: set[asyncio.Timeout] = set()

    async def serve(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until one side ends it."""
        # Ctrl-C cancels each connection, and asyncio would tell that with a stack.
        with suppress(asyncio.CancelledError, TimeoutError):
            try:
                async with asyncio.timeout(self._limits.stranger_s) as stay:
                    self._receive(stay)
                    await self._serve(stay, stream, writer)
            finally:
                writer.close()

    def _receive(self, stay: asyncio.Timeout) -> None:
        """Let one more stranger in; where they are many, who came first has to go."""
        if len(self._strangers) >= self._limits.max_strangers:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            if not oldest.expired():
                oldest.reschedule(0.0)
        self._strangers[stay] = None

    async def _serve(
        self, stay: asyncio.Timeout, stream: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        reader = MessageReader(stream, MAX_FIRST_BYTES)

        def admitted() -> None:
            if stay in self._strangers and not stay.expired():
                del self._strangers[stay]
                self._clients.add(stay)
                stay.reschedule(None)
                reader.max_bytes = MAX_MESSAGE_BYTES

        try:
            if len(self._clients) < self._limits.max_clients:
                server = create_server(self._command_line, Admission(self._token, admitted))
                server.protocol.set_writer(writer)
                await serve(server, reader)
        finally:
            self._strangers.pop(stay, None)
            self._clients.discard(stay)


async def serve(server: ForegramServer, reader: StdinAsyncReader | MessageReader) -> int:
    """Handle messages until the client exits or its stream ends; the exit status as LSP has it."""
    try:
        # pygls' own logger, which is silent: the client hears what its messages lack.
        await run_async(
            threading.Event(), reader, server.protocol, error_handler=server.report_server_error
        )
    except SystemExit as exit_request:
        return int(exit_request.code or 0)
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        return 1  # it left in the middle of a word, or did not speak LSP
    finally:
        await server.session.leave()
        server.thread_pool.shutdown(wait=False, cancel_futures=True)
    return 0
