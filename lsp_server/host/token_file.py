"""A file that holds a token: read only if it is secret, and long enough to be one."""

import os
import stat
from pathlib import Path

from engine.errors import ConfigurationError

MIN_TOKEN_LEN = 16
_MAX_BYTES = 4096
_MAKE = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"


def read_token(path: Path, name: str) -> str:
    """The token in the file that the option or setting `name` gives. Raises ConfigurationError."""
    try:
        content = _read(path, f"{name} {path}")
        token = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{name} {path} cannot be read: {reason}") from error
    if not (token.isascii() and token.isprintable()):  # no header can carry it
        raise ConfigurationError(f"{name} {path} holds more than one line of ASCII text")
    if len(token) < MIN_TOKEN_LEN:
        raise ConfigurationError(
            f"{name} {path} holds {len(token)} characters, too few for a secret; write "
            f"{MIN_TOKEN_LEN} or more into it ({_MAKE})"
        )
    return token


def _read(path: Path, called: str) -> bytes:
    with open(path, "rb", opener=_open_at_once) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ConfigurationError(f"{called} is not a regular file")
        if stat.S_IMODE(found.st_mode) & 0o077:
            mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
            raise ConfigurationError(
                f"{called} is open to other users, {mode}; run: chmod 600 {path}"
            )
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ConfigurationError(f"{called} is too large for a token, above {_MAX_BYTES:,} bytes")
    return content


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for the other end, if the file is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
