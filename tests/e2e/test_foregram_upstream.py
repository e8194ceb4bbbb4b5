"""`foregram lsp` shows what a real llama.cpp server writes, through a host that has no model."""

import os
import subprocess
import sys

import pytest

from tests.support.editor import editor
from tests.support.llama_upstream import joined_offline_model, llama_upstream
from tests.support.ports import free_port
from tests.support.served_host import served_host
from tests.support.sources import BEGUN

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(400)]

# Without torch.
BLOCKED = ("-c", "import sys; sys.modules['torch'] = None; from lsp_server.cli import main; main()")
SOURCE = f"{BEGUN}    for item in items:\n        tot|\n    return total\n"


async def test_an_editor_shows_what_llama_cpp_writes_through_a_host_without_torch(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("FOREGRAM_RUNTIME", str(tmp_path / "run"))
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    url = f"http://127.0.0.1:{free_port()}"
    with (
        llama_upstream(joined_offline_model(tmp_path)) as upstream,
        served_host(
            tmp_path, "--backend", "openai", "--upstream", upstream, url=url, program=BLOCKED
        ) as host,
    ):
        host.until_ready()
        options = {"editorInfo": {"name": "test", "version": "1"}}
        async with editor(options=options, environ={"FOREGRAM_HOST_URL": url}) as shown:
            shown.open(SOURCE)
            item, *_ = await shown.items(invoked=True)
            text = str(item.insert_text)
            assert text.startswith("al += item.weight")
            shown.type(text[:2])
            rest, *_ = await shown.items()
            assert "tot" + text == shown.before.rpartition("\n")[2].strip() + str(rest.insert_text)
            assert "llama.cpp" in shown.states[-1]["message"]
        told = subprocess.run(
            [sys.executable, "-m", "lsp_server", "doctor"],
            env={**os.environ, "FOREGRAM_HOST_URL": url},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "so users go without drafts from open buffers" in told.stdout
