"""What `foregram doctor` says of the connection to a remote host: TLS and its certificate."""

import socket
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from engine.errors import ConfigurationError
from lsp_server.host.address import HostAddress
from lsp_server.model_choice import Check

LIMIT_S = 5.0
DAYS_LEFT = 14
_RENEW = "renew it on the host's machine"


def check_tls(address: HostAddress) -> Check:
    """Whether a remote host is reached over TLS, with a certificate that is trusted and valid."""
    url = urlsplit(address.url)
    if not address.is_encrypted:
        if address.is_local:
            return Check("tls", "ok", f"not needed: {address.url} is on this machine")
        advice = "start the host with --tls-cert and --tls-key, or use an SSH tunnel"
        return Check("tls", "warning", f"{address.url} is not encrypted", advice)
    try:
        until = _valid_until(address.tls_context(), str(url.hostname), url.port or 443)
    except ssl.SSLCertVerificationError as error:
        return _distrusted(error, address)
    except OSError as error:
        # Not a failure: there may be a proxy, and the next check is whether the host answers.
        what = f"no handshake with {address.url}: {error.strerror or error}"
        return Check("tls", "warning", what, "check that a host listens there with --tls-cert")
    left = int((until - time.time()) / 86_400)
    what = f"the certificate is trusted, and valid for {left} more days"
    if left < DAYS_LEFT:
        return Check("tls", "warning", what, _RENEW)
    return Check("tls", "ok", what)


def _valid_until(context: ssl.SSLContext, host: str, port: int) -> float:
    with (
        socket.create_connection((host, port), LIMIT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as guarded,
    ):
        certificate: dict[str, Any] = guarded.getpeercert() or {}
    if "notAfter" not in certificate:
        raise ConfigurationError("the certificate has no expiry date")
    return ssl.cert_time_to_seconds(certificate["notAfter"])


def _distrusted(error: ssl.SSLCertVerificationError, address: HostAddress) -> Check:
    what = f"the certificate of {address.url} is not accepted: {error.verify_message}"
    if "expired" in error.verify_message:
        return Check("tls", "failed", what, _RENEW)
    if address.ca_file is not None:
        what += f" (ca_file is {address.ca_file})"
    advice = "set ca_file to the certificate that signed it, and host_url to a name that it is for"
    return Check("tls", "failed", what, advice)
