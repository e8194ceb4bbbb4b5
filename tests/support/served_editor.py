"""An editor with its server in this process, and the host that the server finds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.host.runtime import RuntimeFolder
from tests.support.editor import editor
from tests.support.running_host import RunningHost, running_host


@asynccontextmanager
async def served(
    tmp_path: Path, engine: Any, *, load: Any = None, requested_model: Any = "", **options: Any
) -> AsyncIterator[tuple[Any, RunningHost]]:
    """Serve an engine to an editor, which `options` are for; nothing is computed ahead."""
    run = RuntimeFolder.open(tmp_path / "run")
    environ = {
        "FOREGRAM_RUNTIME": str(run.path),
        "FOREGRAM_CACHE": str(tmp_path),
        "FOREGRAM_CONFIG": str(tmp_path / "foregram.toml"),
        "FOREGRAM_SPECULATE": "false",
    }
    async with (
        running_host(
            run.path, engine, token=run.token(), load=load, requested_model=requested_model
        ) as host,
        editor(environ=environ, command=None, **options) as shown,
    ):
        yield shown, host
