"""A client's token file: one token, long enough to be a secret."""

from pathlib import Path

from engine.errors import ConfigurationError
from engine.host.secret_file import MAKE_TOKEN, MIN_TOKEN_LEN, read_secret

_MAX_BYTES = 4096


def read_token(path: Path, name: str, least_len: int = MIN_TOKEN_LEN) -> str:
    """The token in the file that the option or setting `name` gives. Raises ConfigurationError."""
    token = read_secret(path, f"{name} {path}", _MAX_BYTES).strip()
    if not (token.isascii() and token.isprintable()):  # no header can carry it
        raise ConfigurationError(f"{name} {path} holds more than one line of ASCII text")
    if len(token) < least_len:
        raise ConfigurationError(
            f"{name} {path} holds {len(token)} characters, too few for a secret; write "
            f"{least_len} or more into it ({MAKE_TOKEN})"
        )
    return token
