"""Reading a file of secrets, which must be a regular file that only its user may open."""

import os
import stat
import struct
from pathlib import Path

from engine.errors import ConfigurationError

_MIN_TOKEN_LEN = 16  # characters; 16 random ones of base64 hold 96 bits
MAKE_TOKEN = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
_MAX_TOKEN_BYTES = 4096  # size limit of a file with a single token
_OWNER, _USER, _MASK = 0x01, 0x02, 0x10  # entries of an access list, whose mask is the group's mode


def read_secret(path: Path, called: str, most_bytes: int) -> str:
    """Return the text of a file; messages call it `called`. Raises ConfigurationError."""
    try:
        return _content(path, called, most_bytes).decode()
    except (OSError, UnicodeDecodeError) as error:
        # A UnicodeDecodeError's message would show the bytes.
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"{called} cannot be read: {reason}") from None


def read_token(path: Path, name: str, least_len: int = _MIN_TOKEN_LEN) -> str:
    """Return the token in `path`, given by the option `name`. Raises ConfigurationError."""
    token = read_secret(path, f"{name} {path}", _MAX_TOKEN_BYTES).strip()
    check_token(token, f"{name} {path}", least_len)
    return token


def check_token(token: str, where: str, least_len: int = _MIN_TOKEN_LEN) -> None:
    """Raise ConfigurationError, which never shows it, for a weak token or one no header carries."""
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise ConfigurationError(f"{where} holds something else than one line of printable ASCII")
    if len(token) < least_len:
        raise ConfigurationError(
            f"{where} holds a token of {len(token)} characters, too few for a secret; write "
            f"{least_len} or more ({MAKE_TOKEN})"
        )


def _content(path: Path, called: str, most_bytes: int) -> bytes:
    # O_NONBLOCK: opening a pipe must not wait for its other end.
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
    """Whether a list (linux/posix_acl_xattr.h) admits its owner and us alone, as systemd's do."""
    try:
        found = os.getxattr(descriptor, "system.posix_acl_access")
    except (OSError, AttributeError):  # no list; no Linux
        return False
    entries = struct.iter_unpack("<HHI", found[4:])  # after the version: kind, rights, id
    others = [entry for entry in entries if entry[0] not in (_OWNER, _MASK) and entry[1]]
    return all((whose, who) == (_USER, os.geteuid()) for whose, _, who in others)
