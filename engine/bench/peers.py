"""Other engines that run the same weights on the same prompts: llama.cpp and transformers."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from engine.bench import llama_cpp
from engine.bench.measured import Peer, PeerRun
from engine.errors import ConfigurationError
from engine.model.loading.catalog import ModelFiles, locate, on_disk
from engine.model.loading.folder_model import FolderModel
from engine.model.transformers.peer import GreedyTransformers
from engine.progress import Progress

TRANSFORMERS_DTYPES = ("float32", "bfloat16")


@contextmanager
def opened_peers(
    names: Collection[str],
    model: str,
    progress: Progress,
    context: int = 4096,
    llama_server: Path | None = None,
) -> Iterator[dict[str, Peer]]:
    """Load the peers `llama-cpp` and `transformers`, if named, and keep them until the block ends.

    `context` are the tokens of the longest prompt with its answer; `llama_server` a llama.cpp of
    your own instead of the wheel. Raises ConfigurationError where one is not installed or cannot
    read such a model.
    """
    peers: dict[str, Peer] = {}
    with ExitStack() as open_ones:
        folder = open_ones.enter_context(TemporaryDirectory(prefix="foregram-"))
        located = on_disk(locate(model, progress), Path(folder), progress)
        if "llama-cpp" in names and llama_server is not None:
            native = llama_cpp.server(llama_server, _gguf_path(located), context)
            peers["llama.cpp"] = open_ones.enter_context(native)
        elif "llama-cpp" in names:
            peers["llama.cpp"] = llama_cpp.wheel(_gguf_path(located), context)
        for dtype in TRANSFORMERS_DTYPES if "transformers" in names else ():
            decode = partial(_generate, GreedyTransformers.load(located, dtype))
            peers[f"transformers {dtype}"] = Peer(decode, f"torch {torch.__version__}")
        yield peers


@contextmanager
def gguf_file(model: str, progress: Progress) -> Iterator[Path]:
    """A model's .gguf file, until the block ends. Raises ConfigurationError where it has none."""
    with TemporaryDirectory(prefix="foregram-") as folder:
        yield _gguf_path(on_disk(locate(model, progress), Path(folder), progress))


def _generate(model: GreedyTransformers, prompt_ids: Sequence[int], num_tokens: int) -> PeerRun:
    """transformers' `generate`, without drafts; the first token's time is prefill."""
    generated = model.generate(prompt_ids, num_tokens)
    return PeerRun(num_tokens - 1, generated.first_ms, generated.others_ms)


def _gguf_path(located: ModelFiles) -> Path:
    if isinstance(located, FolderModel):
        raise ConfigurationError(f"llama.cpp reads .gguf files; the model {located.name} is none")
    return located.path
