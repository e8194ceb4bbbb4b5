"""Completion hosts that a test looks at from outside, or starts beside the local one."""

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION, SyncRequest
from tests.support.editor_home import COMMAND
from tests.support.polling import until
from tests.support.ports import free_port

_LOAD_S = 300.0  # on a machine that does much else


def host_status(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the local host says of itself; empty where there is none."""
    done = subprocess.run(
        [COMMAND, "status", "--json"], env=environ, capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return found


def metric(environ: Mapping[str, str], name: str) -> float:
    """A figure of the local host; 0 before it was first counted."""
    with _local_client(environ) as client:
        page = client.get("/metrics").text
    lines = [line for line in page.splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def join(environ: Mapping[str, str]) -> None:
    """Be another editor of the local host, with nothing open."""
    request = SyncRequest("another", "file:///another", ())
    headers = {"content-type": "application/json", PROTOCOL_HEADER: str(PROTOCOL_VERSION)}
    with _local_client(environ) as client:
        content = msgspec.json.encode(request)
        client.post("/v1/buffers", content=content, headers=headers).raise_for_status()


def _local_client(environ: Mapping[str, str]) -> httpx2.Client:
    runtime = Path(environ["FOREGRAM_RUNTIME"])
    return httpx2.Client(
        transport=httpx2.HTTPTransport(uds=str(runtime / "host.sock")),
        base_url="http://host",
        headers=_bearer((runtime / "token").read_text().strip()),
    )


@dataclass(frozen=True)
class RemoteHost:
    """A host behind an address, a token and a certificate that nobody has signed."""

    url: str
    token: str
    token_file: Path
    ca_file: Path

    @property
    def settings(self) -> dict[str, str]:
        """The server's settings that reach it."""
        return {
            "host_url": self.url,
            "token_file": str(self.token_file),
            "ca_file": str(self.ca_file),
        }

    def num_requests(self) -> float:
        """How many completions it has been asked for."""
        with _client(self) as client:
            page = client.get("/metrics").text
        counted = [line for line in page.splitlines() if line.startswith("foregram_requests_total")]
        return sum(float(line.rpartition(" ")[2]) for line in counted)


def secret_file(path: Path, token: str) -> Path:
    """Write `token` into a file that its user alone may read."""
    path.touch(0o600)
    path.write_text(f"{token}\n")
    return path


@contextmanager
def remote_host(folder: Path, environ: Mapping[str, str]) -> Iterator[RemoteHost]:
    """A host over TLS that has loaded its model. Skips the test where there is no openssl."""
    _make_certificate(folder)
    token = "open-sesame-for-a-test"
    secret_file(folder / "token", token)
    url = f"https://localhost:{free_port()}"
    files = ["--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    command = [str(COMMAND), "serve", "--port", url.rpartition(":")[2], *files]
    host = RemoteHost(url, token, folder / "token", folder / "cert.pem")
    log = folder / "serve.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=folder, env=environ, stdout=output, stderr=output) as process,
    ):
        try:
            until(lambda: _is_ready(host), log.read_text, limit_s=_LOAD_S)
            yield host
        finally:
            process.terminate()
    assert "Traceback" not in log.read_text()


def _make_certificate(folder: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("no openssl command to make a certificate with")
    options = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(
        ["openssl", *options, *name, *files], cwd=folder, check=True, capture_output=True
    )


def _is_ready(host: RemoteHost) -> bool:
    try:
        with _client(host) as client:
            return client.get("/health").is_success
    except httpx2.TransportError:
        return False


def _client(host: RemoteHost) -> httpx2.Client:
    trusted = ssl.create_default_context(cafile=host.ca_file)
    return httpx2.Client(base_url=host.url, verify=trusted, headers=_bearer(host.token))


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
