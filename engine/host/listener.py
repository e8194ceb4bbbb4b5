"""What a host listens on: a socket of its own, or a port."""

import logging
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from engine.errors import ConfigurationError
from engine.host.options import HostOptions
from engine.host.socket_file import listening

_log = logging.getLogger("foregram.host")


@contextmanager
def host_listener(options: HostOptions) -> Iterator[socket.socket]:
    """The socket, or the port with its token where clients look for it; logged once it is there.

    Raises ConfigurationError.
    """
    if options.socket is not None:
        with listening(options.socket) as listener:
            _log.info("listening on %s", options.socket)
            yield listener
        return
    with port_listener(options) as listener:
        address, port = listener.getsockname()[:2]  # the port may have been the system's choice
        with kept_token(options, address, port) as kept:
            _log.info("listening on %s:%s", options.address, port)
            if kept is not None:
                _log.info("clients need the token in %s; those of this user find it there", kept)
            yield listener


def kept_token(
    options: HostOptions, address: str, port: int
) -> AbstractContextManager[Path | None]:
    """Have this user's programs find the token of a port that has none of a file."""
    if options.token and options.token_folder:
        return options.token_folder.kept_port_token(address, port, options.token)
    return nullcontext()


def port_listener(options: HostOptions) -> socket.socket:
    """A listener on the port. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    try:
        listener = socket.create_server((options.address, options.port), family=family)
    except OSError as error:
        reason = error.strerror or error
        where = f"{options.address}:{options.port}"
        raise ConfigurationError(f"cannot listen on {where}: {reason}") from error
    # asyncio sets it for sockets that name TCP alone; without, an answer's body waits 40 ms for the
    # acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
