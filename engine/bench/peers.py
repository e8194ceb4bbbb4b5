"""Other engines that run the same weights on the same prompts: llama.cpp and transformers."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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
from engine.progress import Progress

TRANSFORMERS_DTYPES = ("float32", "bfloat16")
_SILENT = -1  # the level of llama.cpp's log


class LlamaCpp:
    """llama.cpp in this process, from the xllamacpp wheel (extra `peers`): a server of one slot.

    Its threads sleep between runs, so it does not disturb the others' times.
    """

    def __init__(self, model: Path, context: int) -> None:
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
        parameters.cpuparams.n_threads = torch.get_num_threads()  # as the engine has them
        parameters.cpuparams_batch.n_threads = torch.get_num_threads()
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


@contextmanager
def opened_peers(
    names: Collection[str], model: str, progress: Progress, context: int = 4096
) -> Iterator[dict[str, Peer]]:
    """Load the peers `llama-cpp` and `transformers`, if named, and keep them until the block ends.

    `context` are the tokens of the longest prompt with its answer. Raises ConfigurationError where
    one is not installed or cannot read such a model.
    """
    peers: dict[str, Peer] = {}
    with TemporaryDirectory(prefix="foregram-") as folder:
        located = on_disk(locate(model), Path(folder), progress)
        if "llama-cpp" in names:
            peers["llama.cpp"] = LlamaCpp(_gguf_path(located), context).decode
        for dtype in TRANSFORMERS_DTYPES if "transformers" in names else ():
            model_of_dtype = GreedyTransformers.load(located, dtype)
            peers[f"transformers {dtype}"] = partial(_generate, model_of_dtype)
        yield peers


def _generate(model: GreedyTransformers, prompt_ids: Sequence[int], num_tokens: int) -> PeerRun:
    """transformers' `generate`, without drafts; the first token's time is prefill."""
    generated = model.generate(prompt_ids, num_tokens)
    return PeerRun(num_tokens - 1, generated.first_ms, generated.others_ms)


def _gguf_path(located: ModelFiles) -> Path:
    if isinstance(located, FolderModel):
        raise ConfigurationError(f"llama.cpp reads .gguf files; the model {located.name} is none")
    return located.path
