"""What `foregram doctor` checks of the host and the way to it: one function for each check."""

import asyncio
import socket
import ssl
import stat
import time
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from engine.errors import ConfigurationError
from engine.host.protocol import (
    PROTOCOL_VERSION,
    Bounds,
    BufferSync,
    CloseRequest,
    CompleteRequest,
    Done,
    Failed,
    Position,
    Problem,
    Status,
)
from engine.host.runtime import RuntimeFolder
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.client import HostClient, HostGoneError, HostRefusedError
from lsp_server.host.probe import ProbeResult
from lsp_server.host.upgrade import version_sentence
from lsp_server.model_choice import Check
from lsp_server.settings import Settings

SLOW_MS = 2000.0
PROBE_LIMIT_S = 60.0
_URI = "file:///doctor/probe.py"
_LOCAL_ADVICE = {
    "": "`foregram logs` may say why; `foregram stop` ends it",
    "wrong_protocol": "run `foregram stop`: an editor then starts a host of this version",
    "wrong_token": "run `foregram stop`: the next host uses the current token",
}
_REMOTE_ADVICE = {
    "": "check the machine that it should run on, and host_url",
    "wrong_protocol": "install one version of foregram on both machines",
    "wrong_token": "token_file has to be the file that the host names when it starts, or token its text",
}
LIMIT_S = 5.0
DAYS_LEFT = 14
_RENEW = "renew it on the host's machine"


def check_host(answer: ProbeResult, *, is_remote: bool) -> Check:
    """Whether there is a host, and whether it serves."""
    if answer.status is not None:
        return _check_status(answer.status, is_remote=is_remote)
    if answer.kind == "absent" and not is_remote:
        advice = "editors start one; so does `foregram doctor --start`"
        return Check("host", "warning", answer.reason, advice)
    return Check("host", "failed", answer.reason, _advice(answer.code, is_remote=is_remote))


def check_socket(path: Path) -> Check:
    """Whether only the user can open the local host's socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return Check("socket", "ok", f"{path}, created when a host starts")
    if not stat.S_ISSOCK(mode):
        return Check("socket", "failed", f"{path} is not a socket", f"run: rm {path}")
    return _private("socket", path, mode)


def check_token(settings: Settings) -> Check:
    """Whether there is a token, and whether it is secret. It is never shown."""
    if settings.host_url is None:
        folder = RuntimeFolder.open(settings.runtime_folder)
        folder.token()
        return _private("token", folder.token_path, folder.token_path.stat().st_mode)
    if settings.token:
        return Check("token", "ok", "in the settings themselves")
    path = settings.token_file
    if path is None:
        found = host_address(settings).token
        what = "that of the host on this machine" if found else "none: token_file is not set"
        return Check("token", "ok", what)
    host_address(settings)  # which says what is wrong with it
    return _private("token", path, path.stat().st_mode)


def check_backend(status: Status) -> Check:
    """What users go without, as another program generates."""
    what = f"{status.device} generates, so users go without {'; '.join(status.lost)}"
    return Check("backend", "ok", what)


async def check_latency(address: HostAddress) -> Check:
    """How long a completion of a few tokens takes."""
    host = HostClient(address.client(PROBE_LIMIT_S), address.endpoint)
    name = uuid4().hex[:8]
    client_id = f"doctor-{name}"
    begin = time.perf_counter()
    try:
        async with asyncio.timeout(PROBE_LIMIT_S):  # of all of it, however it drips
            done = await _completed(host, _probe(client_id, name))
    except (HostGoneError, HostRefusedError, TimeoutError) as error:
        reason = str(error) or f"it took more than {PROBE_LIMIT_S:.0f} s"
        what = f"a completion of three lines failed: {reason}"
        return Check("latency", "failed", what, "the host's log may say why")
    finally:
        with suppress(HostGoneError, HostRefusedError):
            await host.close_buffers(CloseRequest(client_id))
        await host.close()
    return _latency(1000 * (time.perf_counter() - begin), done)


def _check_status(status: Status, *, is_remote: bool) -> Check:
    if status.protocol != PROTOCOL_VERSION:
        what = f"it speaks protocol {status.protocol}, not {PROTOCOL_VERSION}"
        return Check("host", "failed", what, _advice("wrong_protocol", is_remote=is_remote))
    if status.state == "ready":
        model = " ".join(filter(None, (status.model, status.dtype)))
        what = f"ready: {model} on {status.device}, protocol {status.protocol}"
        other = version_sentence(status, is_remote=is_remote)
        return Check("host", "ok", "; ".join(filter(None, (what, other))))
    if status.state == "failed":
        reason = status.problem.message if status.problem else "for an unknown reason"
        advice = "fix that, then run `foregram stop`: the next host tries again"
        return Check("host", "failed", f"the model cannot be loaded: {reason}", advice)
    if status.state == "stopping":
        return Check("host", "warning", "it is shutting down", "run `foregram doctor` again")
    task = f": {status.progress.task}" if status.progress else " its model"
    return Check("host", "warning", f"loading{task}", "wait; `foregram status` shows the progress")


def _advice(code: str, *, is_remote: bool) -> str:
    advice = _REMOTE_ADVICE if is_remote else _LOCAL_ADVICE
    return advice.get(code, advice[""])


def _private(name: str, path: Path, mode: int) -> Check:
    rights = stat.S_IMODE(mode)
    if rights & 0o077:
        what = f"{path} is open to other users, mode {rights:04o}"
        return Check(name, "warning", what, f"run: chmod 600 {path}")
    return Check(name, "ok", f"{path}, mode {rights:04o}")


def _probe(client_id: str, name: str) -> CompleteRequest:
    # A new name each time: a text that the host remembers would measure nothing.
    lines = (f"def add_{name}(a, b):", "    ", "")
    return CompleteRequest(
        client_id,
        "/doctor",
        _URI,
        version=1,
        position=Position(1, len(lines[1])),
        sync=(BufferSync(_URI, "probe.py", "python", 1, lines=lines),),
        bounds=Bounds(max_tokens=8),
    )


async def _completed(host: HostClient, request: CompleteRequest) -> Done:
    async with aclosing(host.complete(request)) as events:
        async for event in events:
            if isinstance(event, Failed):
                raise HostRefusedError(Problem(event.code, event.message))
            if isinstance(event, Done):
                return event
    raise HostGoneError("the response was cut off")


def _latency(total_ms: float, done: Done) -> Check:
    times = done.timings
    what = (
        f"{total_ms:.0f} ms for {done.tokens} tokens: waiting {times.queue_ms:.0f}, "
        f"prefill {times.prefill_ms:.0f}, decode {times.decode_ms:.0f}"
    )
    if total_ms > SLOW_MS:
        advice = (
            "choose a smaller model or a remote host, or see whether other programs use the CPU"
        )
        return Check("latency", "warning", what, advice)
    return Check("latency", "ok", what)


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
