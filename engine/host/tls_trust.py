"""Whom a connection to another program trusts, and the proxy that it takes."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from engine.errors import ConfigurationError


def rejected_certificate(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """What of a failure to connect was a certificate."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


def tls_context(url: str, ca_file: Path | None, called: str) -> ssl.SSLContext:
    """Trusts what the system trusts, and `ca_file`, which messages call `called`.

    Where the address is none of TLS it trusts nobody and reads no file. Raises ConfigurationError.
    """
    if not url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    what = "the certificates that SSL_CERT_FILE names"
    try:
        context = httpx2.create_ssl_context()
        if ca_file is not None:
            what = f"{called} {ca_file}"
            context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(f"{what} cannot be used: {error.strerror or error}") from error
    return context


@contextmanager
def usable_proxies() -> Iterator[None]:
    """A client is made, which reads the environment's proxies. Raises ConfigurationError."""
    try:
        yield
    except (ImportError, ValueError) as error:  # ImportError: of a package for SOCKS
        raise ConfigurationError(
            "the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names cannot be used: it has to "
            "begin with http:// or https://; NO_PROXY names hosts that are asked without one"
        ) from error
