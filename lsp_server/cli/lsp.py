"""`foregram lsp`: a language server over stdio, or one for each connection to a port or socket."""

import argparse
import asyncio
import logging
import socket
import sys
from functools import partial

from pygls.io_ import StdoutWriter

from engine.errors import ConfigurationError
from engine.host.runtime import RuntimeFolder
from engine.host.socket_file import listening
from lsp_server.cli.messages import note
from lsp_server.server import ForegramServer, create_server
from lsp_server.setting_layers import Layer
from lsp_server.settings import Settings
from lsp_server.transport.connections import MAX_MESSAGE_BYTES, TOKEN_KEY, Connections, serve
from lsp_server.transport.framing import HEADER_BYTES, MessageReader, stream_of


def serve_editor(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve one editor over stdio until it leaves, or many over a port or socket until Ctrl-C."""
    logging.basicConfig(level=logging.DEBUG if settings.debug else logging.WARNING)
    given = {"model": arguments.model, "host_url": arguments.host_url}
    command_line = Layer("command line", {key: one for key, one in given.items() if one})
    create = partial(create_server, command_line)
    if arguments.socket is not None:
        with listening(arguments.socket) as listener:
            asyncio.run(_serve_all(listener, Connections(create)))
    elif arguments.port is not None:
        folder = RuntimeFolder.open(settings.runtime_folder)
        connections = Connections(create, folder.lsp_token())
        with _listening_on(arguments.port) as listener:
            shown = f" ({TOKEN_KEY} in {folder.lsp_token_path})"
            asyncio.run(_serve_all(listener, connections, shown))
    else:
        return asyncio.run(_serve_stdio(create()))
    return 0


async def _serve_stdio(server: ForegramServer) -> int:
    server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
    stream = stream_of(sys.stdin.fileno())
    return await serve(server, MessageReader(stream, MAX_MESSAGE_BYTES))


async def _serve_all(listener: socket.socket, connections: Connections, shown: str = "") -> None:
    """Serve each connection with a server of its own; `shown` is what clients need beside."""
    await asyncio.start_server(connections.serve, sock=listener, limit=HEADER_BYTES)
    name = listener.getsockname()
    address = name if isinstance(name, str) else f"{name[0]}:{name[1]}"
    note(f"language server on {address}{shown}")
    # Not serve_forever: since Python 3.12 that ends with the last connection, whatever Ctrl-C says.
    await asyncio.get_running_loop().create_future()


def _listening_on(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ConfigurationError(f"cannot listen on port {port}: {error.strerror}") from error
    except OverflowError as error:
        raise ConfigurationError(f"port {port} is not within 0 and 65535") from error
