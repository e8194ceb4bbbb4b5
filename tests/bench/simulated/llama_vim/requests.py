"""The requests' bodies."""

from collections.abc import Sequence
from typing import Any

from tests.bench.simulated.llama_vim.context import FimContext
from tests.bench.simulated.llama_vim.ring import RingChunk

_FIRST_MS, _AHEAD_MS = 250, 1000  # time limits of the server for writing
_TIMINGS = ("prompt_n", "prompt_ms", "predicted_n", "predicted_ms")


def fim_request(
    context: FimContext, chunks: Sequence[RingChunk], *, is_ahead: bool
) -> dict[str, Any]:
    """Return a request to complete at a cursor, or ahead, behind text that is shown there.

    The first request has to be quick; a request ahead may write for longer and follows it.
    """
    return {
        "id_slot": 0,
        "input_prefix": context.prefix,
        "input_suffix": context.suffix,
        "input_extra": [chunk.extra for chunk in chunks],
        "prompt": context.middle,
        "n_predict": 128,
        "stop": [],
        "n_indent": context.indent,
        "top_k": 40,
        "top_p": 0.90,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": _AHEAD_MS if is_ahead else _FIRST_MS,
        "response_fields": ["content", *(f"timings/{name}" for name in _TIMINGS)],
    }


def reading_request(chunks: Sequence[RingChunk]) -> dict[str, Any]:
    return {
        "id_slot": 0,
        "input_prefix": "",
        "input_suffix": "",
        "input_extra": [chunk.extra for chunk in chunks],
        "prompt": "",
        "n_predict": 0,
        "temperature": 0.0,
        "samplers": [],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": 1,
        "t_max_predict_ms": 1,
        "response_fields": [""],
    }
