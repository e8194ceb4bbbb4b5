"""`foregram lsp` shows what a real llama.cpp server writes, through a host that has no model."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.support.editor import editor
from tests.support.llama_upstream import joined_offline_model, llama_upstream
from tests.support.polling import until
from tests.support.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.asyncio,
    pytest.mark.timeout(400),
]

SOURCE = '''def total_price(items):
    """The price of all items."""
    total = 0
    for item in items:
        total += item.price * item.count
    return total


def total_weight(items):
    """The weight of all items."""
    total = 0
    for item in items:
        tot|
    return total
'''


@contextmanager
def host_of(upstream: str, folder: Path):
    """A host in a process of its own, without torch; its address."""
    port = free_port()
    options = ["--backend", "openai", "--upstream", upstream, "--port", str(port)]
    blocked = "import sys; sys.modules['torch'] = None; from lsp_server.cli import main; main()"
    environ = {**os.environ, "FOREGRAM_RUNTIME": str(folder / "run")}
    environ["FOREGRAM_CACHE"] = str(folder / "cache")
    with (
        (folder / "host.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", blocked, "serve", *options], stderr=log, env=environ
        ) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)


def is_healthy(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health").status_code == 200
    except httpx2.TransportError:
        return False


async def test_an_editor_shows_what_llama_cpp_writes_through_a_host_without_torch(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("FOREGRAM_RUNTIME", str(tmp_path / "run"))
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    with (
        llama_upstream(joined_offline_model(tmp_path)) as upstream,
        host_of(upstream, tmp_path) as url,
    ):
        until(lambda: is_healthy(url), "the host serves", limit_s=300)
        options = {"editorInfo": {"name": "test", "version": "1"}}
        async with editor(options=options, environ={"FOREGRAM_HOST_URL": url}) as shown:
            shown.open(SOURCE)
            item, *_ = await shown.items(invoked=True)
            text = str(item.insert_text)
            assert text.startswith("al += item.weight")
            shown.type(text[:2])
            rest, *_ = await shown.items()
            assert "tot" + text == shown.text.split("\n")[shown.row].strip() + str(rest.insert_text)
            assert "llama.cpp" in shown.states[-1]["message"]
        told = subprocess.run(
            [sys.executable, "-m", "lsp_server", "doctor"],
            env={**os.environ, "FOREGRAM_HOST_URL": url},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "so users go without drafts from open buffers" in told.stdout
