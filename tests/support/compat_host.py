"""A host on a port of this machine, with the tiny model, for clients of other makers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from engine.host.compat.dialects import NAMES, Spoken
from engine.host.options import HostOptions
from engine.host.server import HostServer
from engine.host.service import CompletionService
from tests.support.ports import free_port

TOKEN = "a-token-for-this-test"


@dataclass(frozen=True)
class CompatHost:
    """Where it listens."""

    url: str
    service: CompletionService


def tiny_engine(folder: Path) -> Any:
    """An engine on a random model whose texts are long."""
    import torch

    from engine.engine import Engine
    from engine.options import EngineOptions
    from tests.support.tiny_models import save_model, tiny_model

    shape: dict[str, Any] = {"num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 56}
    model = save_model(tiny_model("qwen2", seed=4, **shape), folder / "model")
    before = torch.get_num_threads()
    options = EngineOptions(cache_folder=folder / "cache", model=str(model), threads=1)
    engine = Engine.load(options)
    torch.set_num_threads(before)
    return engine


@asynccontextmanager
async def compat_host(
    load: Callable[[], Any], apis: str = ",".join(NAMES)
) -> AsyncIterator[CompatHost]:
    """Serve on a free port, with all drop-in APIs and a token."""
    service = CompletionService(lambda _: load())
    options = HostOptions(port=free_port(), token=TOKEN, apis=Spoken.named(apis))
    server = HostServer(service, options)
    task = asyncio.create_task(server.run())
    url = f"http://127.0.0.1:{options.port}"
    async with httpx2.AsyncClient() as client:
        while not task.done():
            with suppress(httpx2.TransportError):
                if (await client.get(f"{url}/health")).status_code == 200:
                    break
            await asyncio.sleep(0.01)
    yield CompatHost(url, service)
    server.stop()
    await task
