"""How long a prompt takes to its first token, with nothing of it cached."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.shapes import Shape
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.arena import rounded
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.token_tree import MAX_ROWS, TokenTree

_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Prefill:
    """From token ids to the first token's id."""

    shape: str
    quantization: str
    prompt_tokens: int
    rows_of_a_piece: int
    ms: float


def measure_prefill(lab: Lab, shapes: Sequence[Shape], lengths: Sequence[int]) -> Cases[Prefill]:
    """Time prompts of random tokens."""
    timed = ((shape.full_name, _time(lab, shape, lengths)) for shape in shapes)
    return lab.cases("reading prompts", len(shapes) * len(lengths), timed)


def _time(lab: Lab, shape: Shape, lengths: Sequence[int]) -> Iterator[Prefill]:
    model = lab.model(shape, rounded(max(lengths) + MAX_ROWS))
    for length in lengths:
        yield Prefill(
            shape=shape.name,
            quantization=shape.quantization_name,
            prompt_tokens=length,
            rows_of_a_piece=model.most_read_rows,
            ms=_median_ms(model, length),
        )


def _median_ms(model: GpuQwen2, length: int) -> float:
    ids = np.random.default_rng(length).integers(model.vocab_size, size=length).tolist()
    slot, times = model.new_slot(length + MAX_ROWS), []
    for _ in range(_REPEATS + 1):
        slot.truncate(0)
        began = time.perf_counter()
        prefill(model, slot, ids[:-1])
        run_step(model, StepInput(slot, TokenTree.chain(ids[-1:])))
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:])  # the first may capture
