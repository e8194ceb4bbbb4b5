"""A file of secrets: read only if it is a regular file that its user alone may open."""

import os
import stat
import struct
from pathlib import Path

from engine.errors import ConfigurationError

MIN_TOKEN_LEN = 16
MAKE_TOKEN = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
_MAX_TOKEN_BYTES = 4096  # of a file that holds one
_OWNER, _USER, _MASK = 0x01, 0x02, 0x10  # kinds of entries in an access list


def read_secret(path: Path, called: str, most_bytes: int) -> str:
    """The text of a file, which messages call `called`. Raises ConfigurationError."""
    try:
        return _content(path, called, most_bytes).decode()
    except (OSError, UnicodeDecodeError) as error:
        # A UnicodeDecodeError would show the bytes.
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"{called} cannot be read: {reason}") from None


def read_token(path: Path, name: str, least_len: int = MIN_TOKEN_LEN) -> str:
    """The token in the file that the option or setting `name` gives. Raises ConfigurationError."""
    token = read_secret(path, f"{name} {path}", _MAX_TOKEN_BYTES).strip()
    if not (token.isascii() and token.isprintable()):  # no header can carry it
        raise ConfigurationError(f"{name} {path} holds more than one line of ASCII text")
    if len(token) < least_len:
        raise ConfigurationError(
            f"{name} {path} holds {len(token)} characters, too few for a secret; write "
            f"{least_len} or more into it ({MAKE_TOKEN})"
        )
    return token


def _content(path: Path, called: str, most_bytes: int) -> bytes:
    # Without waiting for the other end, if the file is a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ConfigurationError(f"{called} is not a regular file")
        if stat.S_IMODE(found.st_mode) & 0o077 and not _lists_us_alone(file.fileno()):
            mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
            raise ConfigurationError(
                f"{called} is open to other users, {mode}; run: chmod 600 {path}"
            )
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ConfigurationError(f"{called} is too large for a token, above {most_bytes:,} bytes")
    return content


def _lists_us_alone(descriptor: int) -> bool:
    """Whether an access list lets nobody in but the owner and us.

    So systemd hands out credentials: root's, and the service's user in a list, whose mask then
    stands in the place of the group's mode. The list's form: linux/posix_acl_xattr.h.
    """
    try:
        found = os.getxattr(descriptor, "system.posix_acl_access")
    except (OSError, AttributeError):  # no list; no Linux
        return False
    entries = struct.iter_unpack("<HHI", found[4:])  # behind the version: whose, rights, id
    others = [entry for entry in entries if entry[0] not in (_OWNER, _MASK) and entry[1]]
    return all((whose, who) == (_USER, os.geteuid()) for whose, _, who in others)
