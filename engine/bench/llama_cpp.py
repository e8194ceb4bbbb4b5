"""llama.cpp as a peer, through the xllamacpp wheel (extra `peers`), inside this process.

Its threads sleep between runs, so it does not disturb the others' times.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.bench.measured import PeerRun
from engine.errors import ConfigurationError

_SILENT = -1


class LlamaCpp:
    """A server of one slot, asked directly and not over the network."""

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
