"""`foregram lsp`: language servers over stdio, or one for each connection over TCP."""

import argparse
import asyncio
import logging
import sys
import threading
from contextlib import suppress

from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async

from engine.errors import ConfigurationError
from lsp_server.server import ForegramServer, create_server
from lsp_server.setting_layers import Layer
from lsp_server.settings import Settings


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
            # Ctrl-C cancels each connection, and asyncio would tell that with a stack.
            with suppress(asyncio.CancelledError):
                await _serve(server, reader)
        finally:
            writer.close()

    try:
        listener = await asyncio.start_server(connected, "127.0.0.1", port)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on port {port}: {error.strerror}") from error
    except OverflowError as error:
        raise ConfigurationError(f"port {port} is not within 0 and 65535") from error
    name = listener.sockets[0].getsockname()
    sys.stderr.write(f"foregram: language server on {name[0]}:{name[1]}\n")
    # Not serve_forever: since Python 3.12 that ends with the last connection, whatever Ctrl-C says.
    await asyncio.get_running_loop().create_future()


async def _serve(server: ForegramServer, reader: StdinAsyncReader | asyncio.StreamReader) -> int:
    """Handle messages until the client exits or its stream ends; the exit status as LSP has it."""
    try:
        # pygls' own logger, which is silent: the client hears what its messages lack.
        await run_async(
            threading.Event(), reader, server.protocol, error_handler=server.report_server_error
        )
    except SystemExit as exit_request:
        return int(exit_request.code or 0)
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        return 1  # it left in the middle of a word; ValueError: a header line without an end
    finally:
        await server.session.leave()
        server.thread_pool.shutdown(wait=False, cancel_futures=True)
    return 0
