"""The local completion host of an environment, seen from outside."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from engine.host.protocol import SyncRequest
from tests.support.editor_home import COMMAND
from tests.support.served_host import headers_with


def host_status(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the local host's status; empty if there is none."""
    done = subprocess.run(
        [COMMAND, "status", "--json"], env=environ, capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return found


def metric(environ: Mapping[str, str], name: str) -> float:
    """Return a metric of the local host; 0 before it was first counted."""
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
    return httpx2.Client(
        transport=httpx2.HTTPTransport(uds=str(runtime / "host.sock")),
        base_url="http://host",
        headers=headers_with((runtime / "token").read_text().strip()),
    )
