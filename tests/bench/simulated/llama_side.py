"""llama.cpp's server with an editor plugin of its own as one of the sides."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.bench.llama_cpp import SPECULATIONS, LlamaServer, started
from tests.bench.simulated.llama_sitting import LlamaSitting
from tests.bench.simulated.llama_vim.ring import Ring
from tests.bench.simulated.llama_vim.sitting import LlamaVimSitting
from tests.bench.simulated.llama_vscode.sitting import LlamaVscodeSitting
from tests.bench.simulated.processes import resume
from tests.bench.simulated.traces import Trace

# From the presets for the plugins' models (`--fim-qwen-1.5b-default` and others).
_OPTIONS = {"-c": "0", "-b": "1024", "-ub": "1024", "--cache-reuse": "256"}
_OPTIONS |= SPECULATIONS["llama.cpp"]
_SLOTS = {"-np": "4"}  # the server's default; llama.vscode asks for three texts at once
# By name: the plugin's rules, and more options of its server.
PLUGINS: dict[str, tuple[type[LlamaSitting], dict[str, str]]] = {
    "llama.vim": (LlamaVimSitting, {}),
    "llama.vscode": (LlamaVscodeSitting, _SLOTS),
}
_ANSWER_S = 600.0


@dataclass(frozen=True, slots=True)
class LlamaSide:
    server: LlamaServer
    name: str

    @asynccontextmanager
    async def sitting(self, trace: Trace) -> AsyncIterator[LlamaSitting]:
        draw = random.Random(trace.id)  # noqa: S311 - which lines of a file are a chunk
        url, limit = self.server.url, httpx2.Timeout(_ANSWER_S)
        async with httpx2.AsyncClient(base_url=url, timeout=limit, trust_env=False) as http:
            kind, _ = PLUGINS[self.name]
            sitting = kind(http, self.server.process_id, trace, Ring(draw))
            await sitting.begin()
            yield sitting

    @property
    def process_ids(self) -> list[int]:
        return [self.server.process_id]


@contextmanager
def llama_side(program: Path, model: Path, name: str) -> Iterator[LlamaSide]:
    """Run the llama-server `program` on a .gguf file for a plugin. Raises ConfigurationError."""
    _, options = PLUGINS[name]
    with started(program, model, _OPTIONS | options) as server:
        side = LlamaSide(server, name)
        try:
            yield side
        finally:
            resume(side.process_ids)
