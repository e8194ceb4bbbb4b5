"""`foregram lsp`: a language server over stdio, or one for each connection to a socket."""

import argparse
import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from functools import partial

from pygls.io_ import StdoutWriter

from engine.host.socket_file import listening
from lsp_server.cli.messages import note
from lsp_server.connection import ForegramServer
from lsp_server.server import create_server
from lsp_server.setting_layers import Layer
from lsp_server.settings import Settings
from lsp_server.transport.stream import HEADER_BYTES, serve, serve_connection, stream_of


def serve_editor(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve one editor over stdio until it leaves, or many over a socket until Ctrl-C."""
    logging.basicConfig(level=logging.DEBUG if settings.debug else logging.WARNING)
    given = {"model": arguments.model, "host_url": arguments.host_url}
    command_line = Layer("command line", {key: one for key, one in given.items() if one})
    create = partial(create_server, command_line)
    if arguments.socket is not None:
        with listening(arguments.socket) as listener:
            asyncio.run(_serve_all(listener, create))
    else:
        return asyncio.run(_serve_stdio(create()))
    return 0


async def _serve_stdio(server: ForegramServer) -> int:
    server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
    return await serve(server, stream_of(sys.stdin.fileno()))


async def _serve_all(listener: socket.socket, create: Callable[[], ForegramServer]) -> None:
    connected = partial(serve_connection, create)
    await asyncio.start_unix_server(connected, sock=listener, limit=HEADER_BYTES)
    note(f"language server on {listener.getsockname()}")
    # Not serve_forever: since Python 3.12 that ends with the last connection, whatever Ctrl-C says.
    await asyncio.get_running_loop().create_future()
