"""The editor's side of a benchmark ends its language server, whatever happens meanwhile."""

import os
import sys

import pytest

from lsp_server.bench.editor import BenchError, opened_editor

pytestmark = pytest.mark.asyncio

COMMAND = [sys.executable, "-m", "lsp_server", "lsp", "--stdio"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_server_ends_with_what_it_was_started_for(tmp_path, fails):
    folders = {"FOREGRAM_RUNTIME": str(tmp_path / "run"), "FOREGRAM_CACHE": str(tmp_path)}
    environ = {**folders, "HOME": str(tmp_path), "FOREGRAM_ENABLE": "false"}
    process_id = 0

    async def measure() -> None:
        nonlocal process_id
        async with opened_editor(COMMAND, environ, tmp_path.as_uri()) as editor:
            process_id = editor.process_id
            await editor.ping()
            if fails:
                raise BenchError("there is no completion")

    if fails:
        with pytest.raises(BenchError, match="no completion"):
            await measure()
    else:
        await measure()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_a_program_that_ends_at_once_is_waited_for_no_longer(tmp_path):
    with pytest.raises(RuntimeError, match="stopped"):
        async with opened_editor([sys.executable, "-c", ""], {}, tmp_path.as_uri()):
            pass
