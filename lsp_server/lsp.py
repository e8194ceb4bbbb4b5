"""`foregram lsp`: language servers over stdio, or one for each connection over TCP."""

import argparse
import asyncio
import logging
import sys
import threading

from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async

from engine.errors import ConfigurationError
from lsp_server.server import ForegramServer, create_server
from lsp_server.settings import Layer, Settings

_LOG = logging.getLogger(__name__)


def serve_editor(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve one editor over stdio until it leaves, or many over TCP until Ctrl-C."""
    logging.basicConfig(level=logging.DEBUG if settings.debug else logging.WARNING)
    given = {"model": arguments.model, "host_url": arguments.host_url}
    command_line = Layer("command line", {key: one for key, one in given.items() if one})
    if arguments.port is None:
        return asyncio.run(_serve_stdio(create_server(command_line)))
    asyncio.run(_serve_tcp(command_line, arguments.port))
    return 0


async def _serve_stdio(server: ForegramServer) -> int:
    server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
    return await _serve(server, StdinAsyncReader(sys.stdin.buffer, server.thread_pool))


async def _serve_tcp(command_line: Layer, port: int) -> None:
    """Serve each connection with a server of its own; this machine's users can reach the port."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = create_server(command_line)
        server.protocol.set_writer(writer)
        try:
            await _serve(server, reader)
        finally:
            writer.close()

    try:
        listener = await asyncio.start_server(connected, "127.0.0.1", port)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on port {port}: {error.strerror}") from error
    async with listener:
        name = listener.sockets[0].getsockname()
        sys.stderr.write(f"foregram: language server on {name[0]}:{name[1]}\n")
        await listener.serve_forever()


async def _serve(server: ForegramServer, reader: StdinAsyncReader | asyncio.StreamReader) -> int:
    """Handle messages until the client exits or its stream ends; the exit status as LSP has it."""
    error_handler = server.report_server_error
    try:
        await run_async(threading.Event(), reader, server.protocol, _LOG, error_handler)
    except SystemExit as exit_request:
        return int(exit_request.code or 0)
    except (ConnectionError, asyncio.IncompleteReadError):
        return 1  # it left in the middle of a word
    finally:
        await server.session.leave()
        server.thread_pool.shutdown(wait=False, cancel_futures=True)
    return 0
