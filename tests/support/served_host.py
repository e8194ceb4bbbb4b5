"""`foregram serve` as a program: on a socket or a port, on a tiny model or one's own."""

import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import msgspec
import pytest

from engine.config import StopRules
from engine.host.principals import METRICS_NAME
from engine.host.protocol import BufferSync, CompleteEvent, CompleteRequest, Position
from engine.request import Done
from lsp_server.host.address import HostAddress
from tests.support.polling import ServerError, until
from tests.support.ports import free_port
from tests.support.running_host import headers_with

ANSWER_S = 20.0  # seconds, far above the time of a tiny model
LOAD_S = 380.0  # seconds; the first start on a machine converts the model
_DRAIN_S = 15.0


def secret_file(path: Path, token: str) -> Path:
    """Write `token` into a file that only its user can read."""
    path.touch(0o600)
    path.write_text(f"{token}\n")
    return path


def token_of(name: str) -> str:
    """Return the token of one of several principals."""
    return f"the-secret-token-of-{name}"


def request(*lines: str, client: str = "one", uri: str = "file:///shop/a.py") -> CompleteRequest:
    """Return a request at the end of the last of these lines, for six tokens."""
    return CompleteRequest(
        client=client,
        workspace="file:///shop",
        uri=uri,
        version=1,
        position=Position(len(lines) - 1, len(lines[-1])),
        sync=(BufferSync(uri, uri.rpartition("/")[2], "python", 1, lines=lines),),
        stop=StopRules(max_tokens=6),
    )


def completed(http: httpx2.Client, asked: CompleteRequest) -> Done:
    answer = http.post("/v1/complete", content=msgspec.json.encode(asked))
    assert answer.status_code == 200, answer.text
    last: CompleteEvent = msgspec.json.decode(answer.text.splitlines()[-1], type=CompleteEvent)
    assert isinstance(last, Done), last
    return last


def local_client(socket: Path, token: str, timeout: float = ANSWER_S) -> httpx2.Client:
    transport = httpx2.HTTPTransport(uds=str(socket))
    headers = headers_with(token)
    return httpx2.Client(
        base_url="http://host", transport=transport, headers=headers, timeout=timeout
    )


@dataclass(frozen=True)
class ServedHost:
    """A running host; `folder` holds its log, and its socket if it has one."""

    process: subprocess.Popen[bytes]
    folder: Path
    url: str = ""
    ca_file: Path | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "host.sock"

    def address(self, name: str) -> HostAddress:
        """Return the address as that principal's language server finds it."""
        return HostAddress(token_of(name), self.socket)

    def client(self, token: str = "", timeout: float = ANSWER_S) -> httpx2.Client:
        if not self.url:
            return local_client(self.socket, token, timeout)
        trusted = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx2.Client(
            base_url=self.url, verify=trusted, headers=headers_with(token), timeout=timeout
        )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` holds; fail with the log if it never does."""

        def holds() -> object:
            if self.process.poll() is not None:
                raise ServerError(f"the host has ended by itself: {self.log}")
            return condition()

        until(holds, lambda: self.log, limit_s=LOAD_S)

    def until_ready(self) -> None:
        with self.client() as http:
            self.until(lambda: http.get("/health").status_code == 200)

    def memory_bytes(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@contextmanager
def served_host(
    folder: Path,
    *options: object,
    url: str = "",
    ca_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] = ("-m", "lsp_server"),
) -> Iterator[ServedHost]:
    """Run a host on a socket in `folder`, or at `url`, until the block ends."""
    place = ["--port", url.rpartition(":")[2]] if url else ["--socket", folder / "host.sock"]
    command = [sys.executable, *program, "serve", *place, *options]
    with (
        (folder / "log").open("wb") as output,
        subprocess.Popen(
            [*map(str, command)],
            cwd=folder,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environ or {})},
            start_new_session=True,  # Ctrl-C goes to this process, which then ends the host
        ) as process,
    ):
        host = ServedHost(process, folder, url, ca_file)
        try:
            host.until(lambda: "listening on" in host.log)
            yield host
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_DRAIN_S)
            process.kill()


@contextmanager
def tiny_host(
    folder: Path, model: Path, names: Sequence[str], *options: str
) -> Iterator[ServedHost]:
    """Run a warm host for these principals and for a reader of metrics, with files in `folder`."""
    lines = [f"{name}:{token_of(name)}" for name in (*names, METRICS_NAME)]
    tokens = secret_file(folder / "tokens", "\n".join(lines))
    own = {"FOREGRAM_CACHE": str(folder / "cache"), "HOME": str(folder)}
    options = ("--token-file", str(tokens), "--model", str(model), *options)
    with served_host(folder, *options, environ=own) as host:
        host.until_ready()
        with host.client(
            token_of(names[0]), LOAD_S
        ) as http:  # warm up: the first request compiles kernels
            completed(http, request("x = "))
        yield host


@dataclass(frozen=True)
class RemoteHost:
    """A host with an address, a token and a self-signed certificate."""

    host: ServedHost
    token: str
    token_file: Path
    ca_file: Path

    @property
    def url(self) -> str:
        return self.host.url

    @property
    def settings(self) -> dict[str, str]:
        return {
            "host_url": self.url,
            "token_file": str(self.token_file),
            "ca_file": str(self.ca_file),
        }

    def num_requests(self) -> float:
        with self.host.client(self.token) as http:
            page = http.get("/metrics").text
        counted = [line for line in page.splitlines() if line.startswith("foregram_requests_total")]
        return sum(float(line.rpartition(" ")[2]) for line in counted)


@contextmanager
def remote_host(folder: Path, environ: Mapping[str, str]) -> Iterator[RemoteHost]:
    """Run a host over TLS with a loaded model. Skips the test without openssl."""
    make_certificate(folder)
    token, ca_file = "open-sesame-for-a-test", folder / "cert.pem"
    token_file = secret_file(folder / "token", token)
    files = ["--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    url = f"https://localhost:{free_port()}"
    with served_host(folder, *files, url=url, ca_file=ca_file, environ=environ) as host:
        host.until_ready()
        yield RemoteHost(host, token, token_file, ca_file)
    assert "Traceback" not in host.log


def make_certificate(folder: Path) -> None:
    """Write `cert.pem`, which its own key signed, and `key.pem`. Skips the test without openssl."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl command to make a certificate with")
    options = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(
        ["openssl", *options, *name, *files], cwd=folder, check=True, capture_output=True
    )
