"""Common parts of HTTP clients: trusted certificates, proxies, and limits on what they read."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from engine.errors import ConfigurationError

MAX_BODY_BYTES = 16 * 2**20  # bytes of a response; no honest program sends more
MAX_LINE_BYTES = 2**20  # the same of a line


def retry_after_s(response: httpx2.Response) -> float | None:
    """Return the seconds in `Retry-After`; None if it is missing or a date."""
    told = response.headers.get("retry-after", "")
    return float(told) if told.isascii() and told.isdigit() else None


async def body_of(response: httpx2.Response) -> bytes:
    """Return the whole body of a streamed response. Raises httpx2.HTTPError."""
    return b"".join([part async for part in _parts(response)])


async def lines_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield NDJSON lines; `aiter_lines` would also split at U+2028. Raises httpx2.HTTPError."""
    rest = b""
    async for part in _parts(response):
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise httpx2.RemoteProtocolError(f"a line of more than {MAX_LINE_BYTES:,} bytes")
        for line in whole:
            yield line
    if rest:
        yield rest


async def _parts(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the raw body: a compressed one, which we do not accept, could expand to any size."""
    num_bytes = 0
    async for part in response.aiter_raw():
        num_bytes += len(part)
        if num_bytes > MAX_BODY_BYTES:
            raise httpx2.RemoteProtocolError(f"a response of more than {MAX_BODY_BYTES:,} bytes")
        yield part


def rejected_certificate(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the certificate error behind a failure to connect, if any."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


def tls_context(url: str, ca_file: Path | None, called: str) -> ssl.SSLContext:
    """Trust the system's certificates and `ca_file`, if there is TLS. Raises ConfigurationError."""
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


def http_client(
    url: str,
    token: str,
    verify: ssl.SSLContext,
    headers: dict[str, str],
    *,
    is_local: bool,
    **options: Any,  # noqa: ANN401 - httpx2's
) -> httpx2.AsyncClient:
    """Return a client whose proxies see no local traffic. Raises ConfigurationError."""
    bearer = {"authorization": f"Bearer {token}"} if token else {}
    options["headers"] = headers | bearer | {"accept-encoding": "identity"}
    try:
        return httpx2.AsyncClient(base_url=url, verify=verify, trust_env=not is_local, **options)
    except (ImportError, ValueError) as error:  # ImportError: SOCKS needs another package
        raise ConfigurationError(
            "the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names cannot be used: it has to "
            "begin with http:// or https://; NO_PROXY names hosts that are asked without one"
        ) from error
