"""What `foregram doctor` looks at between this machine and the host: one function for each check."""

import stat
import time
from contextlib import aclosing, suppress
from pathlib import Path
from uuid import uuid4

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
from lsp_server.host.client import HostClient, HostConflictError, HostGoneError, HostRefusedError
from lsp_server.host.probe import ProbeResult
from lsp_server.model_choice import Check
from lsp_server.settings import Settings

SLOW_MS = 2000.0
PROBE_LIMIT_S = 60.0
_URI = "file:///doctor/probe.py"
_LOCAL_ADVICE = {
    "": "`foregram logs` may say why; `foregram stop` ends it",
    "wrong_protocol": "run `foregram stop`: an editor then starts a host of this version",
    "wrong_token": "run `foregram stop`: the next host takes the token that is there now",
}
_REMOTE_ADVICE = {
    "": "look at the machine it should run on, and at host_url",
    "wrong_protocol": "install one version of foregram on both machines",
    "wrong_token": "token_file has to be the file that the host names at its start, or token its text",
}


def check_host(answer: ProbeResult, *, is_remote: bool) -> Check:
    """Whether a host is there and serves."""
    if answer.status is not None:
        return _check_status(answer.status, is_remote=is_remote)
    if answer.kind == "absent" and not is_remote:
        advice = "an editor starts one; so does `foregram doctor --start`, now"
        return Check("host", "warning", answer.reason, advice)
    return Check("host", "failed", answer.reason, _advice(answer.code, is_remote=is_remote))


def check_socket(path: Path) -> Check:
    """Whether the local host's socket is for its user alone."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return Check("socket", "ok", f"{path}, made when a host starts")
    if not stat.S_ISSOCK(mode):
        return Check("socket", "failed", f"{path} is no socket", f"run: rm {path}")
    return _private("socket", path, mode)


def check_token(settings: Settings) -> Check:
    """Whether the token is there and secret. It is never shown."""
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


async def check_latency(address: HostAddress) -> Check:
    """How long a completion of a few tokens takes."""
    host = HostClient(address.client(PROBE_LIMIT_S), address.endpoint)
    name = uuid4().hex[:8]
    client_id = f"doctor-{name}"
    begin = time.perf_counter()
    try:
        done = await _completed(host, _probe(client_id, name))
    except (HostConflictError, HostGoneError, HostRefusedError) as error:
        what = f"a completion of three lines failed: {error}"
        return Check("latency", "failed", what, "the log of the host may say why")
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
        return Check("host", "ok", what)
    if status.state == "failed":
        reason = status.problem.message if status.problem else "it does not say why"
        advice = "correct that, then `foregram stop`: the next host tries again"
        return Check("host", "failed", f"the model cannot be loaded: {reason}", advice)
    if status.state == "stopping":
        return Check("host", "warning", "is about to end", "run `foregram doctor` again")
    task = f": {status.progress.task}" if status.progress else " its model"
    return Check("host", "warning", f"loading{task}", "wait; `foregram status` says how far it is")


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
    # The name is another one each time: what the host remembers would be no measure of it.
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
    raise HostGoneError("the answer has no end")


def _latency(total_ms: float, done: Done) -> Check:
    times = done.timings
    what = (
        f"{total_ms:.0f} ms for {done.tokens} tokens: waiting {times.queue_ms:.0f}, "
        f"prefill {times.prefill_ms:.0f}, decode {times.decode_ms:.0f}"
    )
    if total_ms > SLOW_MS:
        advice = "choose a smaller model or a remote host; other programs may keep the cores busy"
        return Check("latency", "warning", what, advice)
    return Check("latency", "ok", what)
