"""Principals, whose data a host keeps apart. A bare token's principal is "".

A token file holds one bare token or lines `ada:TOKEN` or `ada:sha256:HEX`; names may repeat.
"""

import hashlib
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from engine.errors import ConfigurationError
from engine.host.protocol import Problem
from engine.host.secret_file import MAKE_TOKEN, check_token, read_secret

METRICS_NAME = "metrics"  # its token only reads the metrics of all principals
WITHDRAWN = Problem("wrong_token", "the token of the request is none of this host's any more")
SCOPE_KEY = "foregram.principal"  # of a request's principal in its ASGI scope
_MAX_BYTES = 1_000_000  # size limit of a token file
_HASHED = "sha256:"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_READING = threading.Lock()  # an older content of a token file must not replace a newer one


@dataclass(slots=True)
class Principals:
    """All principals of a host; without any token it serves every client that reaches it."""

    tokens: Mapping[bytes, str] = field(default_factory=dict)  # names by their tokens' digests
    file: Path | None = None  # source of the tokens
    _read_ns: int = field(default=-1, compare=False, repr=False)  # change time of the tokens' file
    _seen_ns: int = field(default=-1, compare=False, repr=False)  # change time at the last check

    @classmethod
    def of(cls, token: str | None) -> Self:
        """Return the principal of `token`; with None, every client is let in (private socket)."""
        return cls() if token is None else cls({digest_of(token.encode()): ""})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the principals of a token file. Raises ConfigurationError."""
        principals = cls(file=path)
        principals.follow(is_told=True)
        return principals

    def follow(self, *, is_told: bool = False) -> bool:
        """Read the file if told or after it settled. Raises ConfigurationError once per change."""
        if self.file is None:
            return False
        former, self._seen_ns = self._seen_ns, _changed_ns(self.file)
        is_settled = self._read_ns != self._seen_ns == former  # else it may be half saved
        if not (is_told or is_settled):
            return False
        self._read_ns = self._seen_ns
        with _READING:
            self.tokens = _tokens_in(self.file)
        return True

    @property
    def every(self) -> frozenset[str]:
        """The names of all principals."""
        return frozenset(self.tokens.values())

    def named_by(self, token: bytes) -> str | None:
        """Return a token's principal, or None. Compares with every token in constant time."""
        if not self.tokens:
            return ""
        digest, found = digest_of(token), None
        for known, name in self.tokens.items():
            if secrets.compare_digest(digest, known):
                found = name
        return found


def principal_of(scope: Mapping[str, Any]) -> str:
    """Return the principal of an authenticated request with this ASGI scope."""
    principal: str = scope[SCOPE_KEY]
    return principal


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns  # a changed mode counts: it may have been wrong
    except OSError:
        return 0


def _tokens_in(path: Path) -> dict[bytes, str]:
    called = f"the token file {path}"
    names: dict[bytes, str] = {}
    places: dict[bytes, int] = {}  # line numbers
    lines = read_secret(path, called, _MAX_BYTES).removeprefix("\ufeff").split("\n")
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        where = f"{called}, line {number},"
        digest, name = _parsed(line, where)
        if digest in places:
            raise ConfigurationError(f"{where} holds the token of line {places[digest]} once more")
        names[digest], places[digest] = name, number
    if not names:
        raise ConfigurationError(f"{called} holds no token; write one into it ({MAKE_TOKEN})")
    bare = [places[digest] for digest, name in names.items() if not name]
    if bare and len(names) > 1:
        raise ConfigurationError(
            f"{called}, line {bare[0]}, has no name: where there are several tokens, each line is "
            "NAME:TOKEN"
        )
    return names


def _parsed(line: str, where: str) -> tuple[bytes, str]:
    """Return a digest and a name. Raises ConfigurationError, whose message holds no token."""
    name, colon, token = ("", "", line) if line.startswith(_HASHED) else line.partition(":")
    if not colon:
        name, token = "", line
    elif not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{where} has no name before its first colon: letters, digits and . _ @ + - make one, "
            "64 at most"
        )
    if token.startswith(_HASHED):
        digest = token.removeprefix(_HASHED)
        if not _SHA256.fullmatch(digest):
            raise ConfigurationError(f"{where} has no 64 hexadecimal digits behind {_HASHED}")
        return bytes.fromhex(digest), name
    check_token(token, where)
    return digest_of(token.encode()), name


def digest_of(token: bytes) -> bytes:
    """Return the SHA-256 of a token, which is all that a host keeps of it."""
    return hashlib.sha256(token).digest()
