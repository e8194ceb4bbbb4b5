"""Other engines that run the same weights on the same prompts: llama.cpp and transformers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from engine.bench.measured import Peer, PeerRun
from engine.errors import ConfigurationError
from engine.model.loading.catalog import ModelFiles, locate, on_disk
from engine.model.loading.folder_model import FolderModel
from engine.model.transformers.peer import GreedyTransformers
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress

PEERS = ("llama-cpp", "transformers")
TRANSFORMERS_DTYPES = ("float32", "bfloat16")
_SILENT = -1  # the level of llama.cpp's log


class Transformers:
    """transformers' `generate`, without drafts."""

    def __init__(self, model: GreedyTransformers, dtype: str) -> None:
        self.name = f"transformers {dtype}"
        self._model = model

    def decode(self, prompt_ids: Sequence[int], num_tokens: int) -> PeerRun:
        """Generate; the first token's time is prefill."""
        generated = self._model.generate(prompt_ids, num_tokens)
        return PeerRun(num_tokens - 1, generated.first_ms, generated.others_ms)


class LlamaCpp:
    """llama.cpp in this process, from the xllamacpp wheel (extra `peers`): a server of one slot.

    Its threads sleep between runs, so it does not disturb the others' times.
    """

    name = "llama.cpp"

    def __init__(self, model: Path, threads: int, context: int) -> None:
        """Load a .gguf file for `context` tokens. Raises ConfigurationError without the wheel."""
        try:
            xllamacpp: Any = import_module("xllamacpp")
        except ImportError as error:
            raise ConfigurationError(
                f"llama.cpp is not installed ({error}); run pip install 'foregram[peers]'"
            ) from error
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(model)
        parameters.n_ctx = context
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = threads
        parameters.cpuparams_batch.n_threads = threads
        parameters.cache_ram_mib = 0
        parameters.verbosity = _SILENT
        self._server = xllamacpp.Server(parameters)

    def decode(self, prompt_ids: Sequence[int], num_tokens: int) -> PeerRun:
        """Complete greedily and without end; raises ConfigurationError when it refuses."""
        answer: dict[str, Any] = self._server.handle_completions(
            {
                "prompt": list(prompt_ids),
                "n_predict": num_tokens,
                "temperature": 0,
                "ignore_eos": True,
                "cache_prompt": False,
            }
        )
        if "timings" not in answer:
            raise ConfigurationError(f"llama.cpp refuses: {answer['error']['message']}")
        times = answer["timings"]
        # Its clock for decoding starts when the first token is there.
        return PeerRun(times["predicted_n"] - 1, times["prompt_ms"], times["predicted_ms"])


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """Which peers, and how they share the engine's conditions."""

    names: tuple[str, ...]
    model: str | None = None  # as the engine's
    threads: int | None = None
    context: int = 4096  # tokens of the longest prompt with its answer

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in PEERS:
                raise ConfigurationError(f"no peer is called {name!r}: {', '.join(PEERS)}")


@contextmanager
def opened_peers(options: PeerOptions, progress: Progress) -> Iterator[list[Peer]]:
    """Load the peers and keep them until the end of the block.

    Raises ConfigurationError where one is not installed or cannot read such a model.
    """
    threads = options.threads or torch.get_num_threads()
    peers: list[Peer] = []
    with TemporaryDirectory(prefix="foregram-") as folder:
        located = on_disk(locate(options.model or DEFAULT_MODEL), Path(folder), progress)
        if "llama-cpp" in options.names:
            peers.append(LlamaCpp(_gguf_path(located), threads, options.context))
        if "transformers" in options.names:
            peers += [
                Transformers(GreedyTransformers.load(located, dtype), dtype)
                for dtype in TRANSFORMERS_DTYPES
            ]
        yield peers


def _gguf_path(located: ModelFiles) -> Path:
    if isinstance(located, FolderModel):
        raise ConfigurationError(f"llama.cpp reads .gguf files; the model {located.name} is none")
    return located.path
