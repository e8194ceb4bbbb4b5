"""How long a prompt takes to its first token, nothing cached, and all but its end cached."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.bench.gpu.cases import Lab
from engine.bench.gpu.shapes import Shape
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.arena import rounded
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.slot import GpuSlot
from engine.model.token_tree import MAX_ROWS, TokenTree

_REPEATS = 5
_NEW_TOKENS = 64  # of a prompt whose beginning is cached


@dataclass(frozen=True, slots=True)
class FirstToken:
    """From token ids to the first token's id."""

    shape: str
    prompt_tokens: int
    rows_of_a_piece: int
    nothing_cached_ms: float
    all_but_64_cached_ms: float


def measure_first_token(lab: Lab, shape: Shape, lengths: Sequence[int]) -> tuple[FirstToken, ...]:
    """Time prompts of random tokens."""
    room = max(lengths) + MAX_ROWS
    model = lab.model(shape, rounded(room))
    slot = model.new_slot(room)
    return tuple(_time(shape.name, model, slot, length) for length in lengths)


def _time(shape: str, model: GpuQwen2, slot: GpuSlot, length: int) -> FirstToken:
    ids = np.random.default_rng(length).integers(model.vocab_size, size=length).tolist()
    kept = max(0, length - _NEW_TOKENS)
    return FirstToken(
        shape=shape,
        prompt_tokens=length,
        rows_of_a_piece=model.most_read_rows,
        nothing_cached_ms=_median_ms(model, slot, ids, 0),
        all_but_64_cached_ms=_median_ms(model, slot, ids, kept),
    )


def _median_ms(model: GpuQwen2, slot: GpuSlot, ids: Sequence[int], kept: int) -> float:
    """Read all behind the `kept` first tokens, and step."""
    times = []
    for _ in range(_REPEATS + 1):
        slot.truncate(min(kept, slot.length))
        began = time.perf_counter()
        prefill(model, slot, ids[slot.length : -1])
        run_step(model, StepInput(slot, TokenTree.chain(ids[-1:])))
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:])  # the first run may capture, and fills what is kept
