"""`foregram serve` on a tiny model: a program on a socket, before which several people may sit."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import msgspec

from engine.host.principals import METRICS_NAME
from engine.host.protocol import (
    PROTOCOL_HEADER,
    PROTOCOL_VERSION,
    Bounds,
    BufferSync,
    CompleteEvent,
    CompleteRequest,
    Done,
    Position,
)
from lsp_server.host.address import HostAddress
from tests.support.completion_hosts import secret_file
from tests.support.polling import until

ANSWER_S = 20.0  # far above what a tiny model takes
_START_S = 120.0
_DRAIN_S = 15.0


def token_of(name: str) -> str:
    """The token of one who sits before a tiny host."""
    return f"the-secret-token-of-{name}"


def headers_of(name: str) -> dict[str, str]:
    """What each request of that one carries."""
    return {
        "authorization": f"Bearer {token_of(name)}",
        PROTOCOL_HEADER: str(PROTOCOL_VERSION),
        "content-type": "application/json",
    }


def request(*lines: str, client: str = "one", uri: str = "file:///shop/a.py") -> CompleteRequest:
    """Complete at the end of the last line, of a file that holds these; six tokens."""
    return CompleteRequest(
        client=client,
        workspace="file:///shop",
        uri=uri,
        version=1,
        position=Position(len(lines) - 1, len(lines[-1])),
        sync=(BufferSync(uri, uri.rpartition("/")[2], "python", 1, lines=lines),),
        bounds=Bounds(max_tokens=6),
    )


def completed(http: httpx2.Client, asked: CompleteRequest) -> Done:
    """What a request ends with."""
    answer = http.post("/v1/complete", content=msgspec.json.encode(asked))
    assert answer.status_code == 200, answer.text
    last: CompleteEvent = msgspec.json.decode(answer.text.splitlines()[-1], type=CompleteEvent)
    assert isinstance(last, Done), last
    return last


@dataclass(frozen=True)
class TinyHost:
    """A host that serves."""

    process: subprocess.Popen[bytes]
    socket: Path
    log: Path

    def address(self, name: str) -> HostAddress:
        """As a language server of that one finds it."""
        return HostAddress(token_of(name), self.socket)

    def client(self, name: str) -> httpx2.Client:
        """Speaks in that one's name."""
        transport = httpx2.HTTPTransport(uds=str(self.socket))
        return httpx2.Client(
            base_url="http://host", transport=transport, headers=headers_of(name), timeout=ANSWER_S
        )

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text("utf-8", "replace")

    def memory_bytes(self) -> int:
        """What it has in memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@contextmanager
def tiny_host(
    folder: Path,
    model: Path,
    names: Sequence[str],
    *options: str,
    environ: Mapping[str, str] | None = None,
) -> Iterator[TinyHost]:
    """A host whose socket, tokens and log lie in `folder`; the names, and one for its metrics."""
    lines = [f"{name}:{token_of(name)}" for name in (*names, METRICS_NAME)]
    secret_file(folder / "tokens", "\n".join(lines))
    place = folder / "host.sock"
    command = [sys.executable, "-m", "lsp_server", "serve", "--socket", str(place), *options]
    command += ["--token-file", str(folder / "tokens"), "--model", str(model)]
    own = {"FOREGRAM_CACHE": str(folder / "cache"), "HOME": str(folder)} | dict(environ or {})
    log = folder / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | own) as process,
    ):
        host = TinyHost(process, place, log)
        try:
            with host.client(METRICS_NAME) as http:
                until(lambda: _is_ready(host, http), host.said, limit_s=_START_S)
            with host.client(names[0]) as http:
                http.timeout = _START_S  # what is compiled for the first of all
                completed(http, request("x = "))
            yield host
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_DRAIN_S)
            process.kill()


def _is_ready(host: TinyHost, http: httpx2.Client) -> bool:
    assert host.process.poll() is None, host.said()
    return "listening on" in host.said() and http.get("/health").status_code == 200
