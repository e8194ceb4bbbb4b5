"""The checks of `foregram doctor` on the host and the way to it, one function each."""

import asyncio
import socket
import ssl
import time
from contextlib import aclosing, suppress
from urllib.parse import urlsplit
from uuid import uuid4

from engine.config import StopRules
from engine.host.protocol import (
    PROTOCOL_VERSION,
    BufferSync,
    CloseRequest,
    CompleteRequest,
    Failed,
    Position,
)
from engine.host.runtime import RuntimeFolder
from engine.request import Chunk
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.client import HostClient, HostGoneError, HostRefusedError, ProbeResult
from lsp_server.host.daemon import version_sentence
from lsp_server.model_choice import Check
from lsp_server.settings import Settings

SLOW_MS = 2000.0  # a completion of three lines that takes longer is a warning
PROBE_LIMIT_S = 60.0  # seconds for that completion
_TLS_LIMIT_S = 5.0  # seconds for each step of connecting, the default of `HostAddress.client`
_LEAST_DAYS = 14  # a certificate that ends sooner is a warning
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


def check_host(answer: ProbeResult, *, is_remote: bool) -> Check:
    """Check that there is a host, and that it serves."""
    advice = _REMOTE_ADVICE if is_remote else _LOCAL_ADVICE
    status = answer.status
    if status is None and answer.kind == "absent" and not is_remote:
        start = "editors start one; so does `foregram doctor --start`"
        return Check("host", "warning", answer.reason, start)
    if status is None:
        return Check("host", "failed", answer.reason, advice.get(answer.code, advice[""]))
    if status.protocol != PROTOCOL_VERSION:
        what = f"it speaks protocol {status.protocol}, not {PROTOCOL_VERSION}"
        return Check("host", "failed", what, advice["wrong_protocol"])
    if status.state == "ready":
        model = " ".join(filter(None, (status.model, status.dtype)))
        what = f"ready: {model} on {status.device}, protocol {status.protocol}"
        other = version_sentence(status, is_remote=is_remote)
        lost = (
            f"{status.device} generates, so users go without {'; '.join(status.lost)}"
            if status.lost
            else ""
        )
        return Check("host", "ok", "; ".join(filter(None, (what, other, lost))))
    if status.state == "failed":
        reason = status.problem.message if status.problem else "for an unknown reason"
        again = "fix that, then run `foregram stop`: the next host tries again"
        return Check("host", "failed", f"the model cannot be loaded: {reason}", again)
    if status.state == "stopping":
        return Check("host", "warning", "it is shutting down", "run `foregram doctor` again")
    task = f": {status.progress.task}" if status.progress else " its model"
    return Check("host", "warning", f"loading{task}", "wait; `foregram status` shows the progress")


def check_token(settings: Settings) -> Check:
    """Check that there is a token and that it is secret. It is never shown."""
    if settings.host_url is None:
        folder = RuntimeFolder.open(settings.runtime_folder)
        folder.token()  # raises if others can read it
        what = f"{folder.token_path}, open only to you"
    elif settings.token:
        what = "in the settings themselves"
    elif host_address(settings).token:  # raises if something is wrong with it
        file = settings.token_file
        what = f"{file}, open only to you" if file else "that of the host on this machine"
    else:
        what = "none: token_file is not set"
    return Check("token", "ok", what)


def check_tls(address: HostAddress) -> Check | None:
    """Warn if others can read the traffic to a host, or if its certificate ends soon."""
    if not address.is_encrypted:
        advice = "start the host with --tls-cert and --tls-key, or use an SSH tunnel"
        what = f"{address.url} is not encrypted"
        return None if address.is_local else Check("tls", "warning", what, advice)
    url = urlsplit(address.url)
    place, context = (str(url.hostname), url.port or 443), address.tls_context()
    try:
        with (
            socket.create_connection(place, _TLS_LIMIT_S) as plain,
            context.wrap_socket(plain, server_hostname=place[0]) as encrypted,
        ):
            until = str((encrypted.getpeercert() or {}).get("notAfter"))
        days = int((ssl.cert_time_to_seconds(until) - time.time()) / 86_400)
    except (OSError, ValueError):  # another check tells whether the host answers
        return None
    what = f"the certificate of {address.url} is valid for {days} more days"
    is_long = days >= _LEAST_DAYS
    return None if is_long else Check("tls", "warning", what, "renew it on the host's machine")


async def check_latency(address: HostAddress) -> Check:
    """Measure how long a completion of a few tokens takes."""
    host = HostClient(address.client(PROBE_LIMIT_S), address.endpoint)
    name = uuid4().hex[:8]  # a new one each time: a known text would measure nothing
    lines = (f"def add_{name}(a, b):", "    ", "")
    request = CompleteRequest(
        client_id := f"doctor-{name}",
        "/doctor",
        _URI,
        version=1,
        position=Position(1, len(lines[1])),
        sync=(BufferSync(_URI, "probe.py", "python", 1, lines=lines),),
        stop=StopRules(max_tokens=8),
    )
    begin = time.perf_counter()
    try:
        async with (
            asyncio.timeout(PROBE_LIMIT_S),  # for the whole answer, however slowly it comes
            aclosing(host.complete(request)) as events,
        ):
            ends = (event async for event in events if not isinstance(event, Chunk))
            end = await anext(ends, Failed("", "it ended in the middle"))
    except (HostGoneError, HostRefusedError, TimeoutError) as error:
        end = Failed("", str(error) or f"it took more than {PROBE_LIMIT_S:.0f} s")
    finally:
        with suppress(HostGoneError, HostRefusedError):
            await host.close_buffers(CloseRequest(client_id))
        await host.close()
    if isinstance(end, Failed):
        what = f"a completion of three lines failed: {end.message}"
        return Check("latency", "failed", what, "the host's log may say why")
    total_ms, cost = 1000 * (time.perf_counter() - begin), end.cost
    what = (
        f"{total_ms:.0f} ms for {cost.tokens} tokens: waiting {cost.queue_ms:.0f}, "
        f"prefill {cost.prefill_ms:.0f}, decode {cost.decode_ms:.0f}"
    )
    if total_ms <= SLOW_MS:
        return Check("latency", "ok", what)
    advice = "choose a smaller model or a remote host, or see whether other programs use the CPU"
    return Check("latency", "warning", what, advice)
