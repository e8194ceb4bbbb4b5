"""Other engines that run the same weights on the same prompts: llama.cpp and transformers."""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from engine.bench.measured import Peer, PeerRun
from engine.errors import ConfigurationError
from engine.model.loading.catalog import ModelFiles, locate, on_disk
from engine.model.loading.folder_model import FolderModel
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress
from lsp_server.cli.terminal import ProgressBars
from lsp_server.settings import Settings
from tests.bench import llama_cpp
from tests.bench.transformers_peer import GreedyTransformers

PEERS = ("llama-cpp", "transformers")
TRANSFORMERS_DTYPES = ("float32", "bfloat16")


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Which other engines to run."""
    parser.add_argument(
        "--compare",
        choices=PEERS,
        action="append",
        default=[],
        help="also run this engine on the same weights and items",
    )
    parser.add_argument(
        "--llama-server",
        metavar="PATH",
        type=Path,
        help="the llama.cpp to compare with, built for this machine, instead of a wheel's",
    )


def compared(
    arguments: argparse.Namespace, settings: Settings
) -> AbstractContextManager[Mapping[str, Peer]]:
    """The peers that these options name, by their names in reports, until the block ends."""
    if arguments.llama_server and "llama-cpp" not in arguments.compare:
        raise ConfigurationError("--llama-server says which llama.cpp: add --compare llama-cpp")
    if not arguments.compare:
        return nullcontext({})
    model = arguments.model or settings.model or DEFAULT_MODEL
    own = arguments.llama_server
    return opened_peers(arguments.compare, model, ProgressBars(), llama_server=own)


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
