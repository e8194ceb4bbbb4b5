"""Neovim's API over its socket: MessagePack-RPC, one call at a time."""

import itertools
import socket
from pathlib import Path
from typing import Any

import msgspec

LIMIT_S = 60.0
_REQUEST = 0


class NeovimError(Exception):
    """What Neovim says of a call that failed."""


class NeovimRpc:
    """One connection. Whatever a call returns is plain data: handles of buffers are not."""

    def __init__(self, path: Path) -> None:
        self._ids = itertools.count()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LIMIT_S)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def call(self, method: str, *arguments: Any) -> Any:
        """What the method returns."""
        message = [_REQUEST, next(self._ids), method, arguments]
        self._socket.sendall(msgspec.msgpack.encode(message))
        _kind, _id, error, result = self._receive()
        if error is not None:
            raise NeovimError(error[1])
        return result

    def close(self) -> None:
        """Leave; Neovim stays."""
        self._socket.close()

    def _receive(self) -> Any:
        content = b""
        while True:
            received = self._socket.recv(1 << 20)
            if not received:
                raise NeovimError("Neovim has ended")
            content += received
            try:
                return msgspec.msgpack.decode(content)
            except msgspec.DecodeError as error:
                if "truncated" not in str(error):
                    raise
