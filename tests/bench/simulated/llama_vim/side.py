"""llama.cpp's server with llama.vim as one of the sides."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.bench.llama_cpp import LlamaServer, started
from tests.bench.simulated.llama_vim.ring import Ring
from tests.bench.simulated.llama_vim.sitting import LlamaVimSitting
from tests.bench.simulated.processes import resume
from tests.bench.simulated.traces import Trace

# From llama.vim's presets for its models (`--fim-qwen-1.5b-default` and others).
_OPTIONS = {"-c": "0", "-b": "1024", "-ub": "1024", "--cache-reuse": "256"}
_ANSWER_S = 600.0


@dataclass(frozen=True, slots=True)
class LlamaVimSide:
    server: LlamaServer
    name: str = "llama.cpp"

    @asynccontextmanager
    async def sitting(self, trace: Trace) -> AsyncIterator[LlamaVimSitting]:
        draw = random.Random(trace.id)  # noqa: S311 - which lines of a file are a chunk
        url, limit = self.server.url, httpx2.Timeout(_ANSWER_S)
        async with httpx2.AsyncClient(base_url=url, timeout=limit, trust_env=False) as http:
            sitting = LlamaVimSitting(http, self.server.process_id, trace, Ring(draw))
            await sitting.begin()
            yield sitting

    @property
    def process_ids(self) -> list[int]:
        return [self.server.process_id]


@contextmanager
def llama_vim_side(program: Path, model: Path) -> Iterator[LlamaVimSide]:
    """Run the llama-server `program` on a .gguf file. Raises ConfigurationError."""
    with started(program, model, _OPTIONS) as server:
        side = LlamaVimSide(server)
        try:
            yield side
        finally:
            resume(side.process_ids)
