"""The place where editors run: the command, an environment of its own, a host seen from outside."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from engine.host.protocol import SyncRequest
from engine.model_names import SMALLEST_MODEL
from tests.support.polling import until
from tests.support.served_host import local_client

COMMAND = Path(sys.executable).with_name("foregram")


@contextmanager
def own_home(cache_folder: Path | None = None) -> Iterator[dict[str, str]]:
    """Yield an environment without a host, and without models unless there is a cache."""
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as home:  # short: it holds sockets
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("FOREGRAM_", "XDG_"))
        }
        cache = str(cache_folder or f"{home}/cache")
        folders = {"FOREGRAM_CACHE": cache, "FOREGRAM_RUNTIME": f"{home}/run"}
        # The tests are about editors: show the model's text, however unsure it is.
        shown = {"FOREGRAM_MIN_CONFIDENCE": "0"}
        try:
            yield kept | {"HOME": home, "LANG": "C.UTF-8"} | folders | shown
        finally:  # a server writes a last time after its editor has left
            until(lambda: not _servers(home), lambda: f"the end of {_servers(home)}")


@contextmanager
def ready_host(environ: Mapping[str, str]) -> Iterator[None]:
    """Run a host on the offline model, once it is loaded; a new machine converts it first."""
    _run("doctor", "--start", environ={**environ, "FOREGRAM_MODEL": SMALLEST_MODEL})
    try:
        yield
    finally:
        _run("stop", "--force", environ=environ).check_returncode()


def host_status(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the local host's status; empty if there is none."""
    said = _run("status", "--json", environ=environ).stdout
    found: dict[str, Any] = json.loads(said) if said.startswith(b"{") else {}
    return found


def feedback(environ: Mapping[str, str], kind: str) -> float:
    """Return how often the local host heard of this; 0 before the first time."""
    name = f'foregram_feedback_total{{kind="{kind}"}}'
    with _local_client(environ) as client:
        page = client.get("/metrics").text
    lines = [line for line in page.splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def join(environ: Mapping[str, str]) -> None:
    """Join the local host as another editor, with nothing open."""
    content = msgspec.json.encode(SyncRequest("another", "file:///another", ()))
    with _local_client(environ) as client:
        client.post("/v1/buffers", content=content).raise_for_status()


def _local_client(environ: Mapping[str, str]) -> httpx2.Client:
    runtime = Path(environ["FOREGRAM_RUNTIME"])
    return local_client(runtime / "host.sock", (runtime / "token").read_text().strip())


def user_cache() -> Path:
    return Path(os.environ.get("FOREGRAM_CACHE", Path.home() / ".cache/foregram"))


def _servers(home: str) -> list[str]:
    """Return the language servers that run with this home; none if the system does not say."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is another user's
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "lsp" in words and f"HOME={home}\0".encode() in (process / "environ").read_bytes():
                found.append(f"process {process.name}: {' '.join(words)}")
    return found


def _run(*words: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([COMMAND, *words], env=environ, stdout=subprocess.PIPE, check=False)
