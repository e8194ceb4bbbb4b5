"""Whether long pieces of a prompt leave the keys that short ones leave, and are read sooner."""

import time
from statistics import median

import numpy as np
import torch

from engine.errors import DeviceLostError
from engine.model.causal_lm import StepInput
from engine.model.gpu.batch_layout import SlotRange
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.launches import is_of_memory
from engine.model.gpu.selfcheck.check import phrase
from engine.model.gpu.selfcheck.replays import CONTEXT, left, some_text, spoil
from engine.model.gpu.selfcheck.verdict import ReadFinding
from engine.model.gpu.step_graphs import (
    LONG_READS,
    MOST_READ_MS,
    ROW_BUCKETS,
    StepGraphs,
    suitable_read,
)
from engine.model.token_tree import TokenTree

_SUBJECT = "long pieces of a prompt"
_SHORT, _TOKENS = ROW_BUCKETS[-1], LONG_READS[-1]  # of a piece as it is, and of what is read
_REPEATS, _TIMINGS = 4, 9


def read_finding(graphs: StepGraphs, most_ms: float = MOST_READ_MS) -> ReadFinding:
    """Read a text in pieces of each length, compare what that leaves, and time it.

    Longer pieces are not used where they have other bits, fail, are no faster or take too long.
    Raises DeviceLostError where one takes the device down.
    """
    forward = graphs.forward
    if min(forward.arena.positions, forward.config.max_position) < CONTEXT + _TOKENS:
        return ReadFinding()
    try:
        with graphs.watched(), some_text(graphs, _TOKENS):
            return _finding(graphs, most_ms)
    except DeviceLostError:
        raise
    except Exception as error:  # noqa: BLE001 - kernels and compilers fail in all ways
        if is_of_memory(error):
            return ReadFinding(note=f"there was no memory to check {_SUBJECT}", is_tried=False)
        return ReadFinding(note=f"{_SUBJECT}: {phrase(error)}")


def _finding(graphs: StepGraphs, most_ms: float) -> ReadFinding:
    expected = _left_by(graphs, _SHORT)
    for longer in LONG_READS:
        if not all(_left_by(graphs, longer).equal(expected) for _ in range(_REPEATS)):
            return ReadFinding(note=f"{_SUBJECT}, {longer} tokens, leave other keys")
    took = _read_ms(graphs)
    rows = suitable_read(took, _TOKENS, most_ms)
    if rows == _SHORT:
        return ReadFinding()
    note = (
        f"prompts are read {rows} tokens at a time: {_TOKENS} take {took[rows]:.3g} ms, and "
        f"{took[_SHORT]:.3g} ms in pieces of {_SHORT}"
    )
    return ReadFinding(rows, note)


def _left_by(graphs: StepGraphs, rows: int) -> torch.Tensor:
    """The keys and values of the text, as bits, read in pieces of so many rows."""
    spoil(graphs, _TOKENS)
    _read(graphs, rows)
    with graphs.on_stream():
        return left(graphs.forward.arena, _TOKENS)


def _read_ms(graphs: StepGraphs) -> dict[int, float]:
    """How long the text takes in pieces of each length; they take turns, as clocks rise and fall."""
    took: dict[int, list[float]] = {rows: [] for rows in (_SHORT, *LONG_READS)}
    for _ in range(_TIMINGS):
        for rows, times in took.items():
            began = time.perf_counter()
            _read(graphs, rows)
            times.append(1000 * (time.perf_counter() - began))
    return {rows: median(times) for rows, times in took.items()}


def _read(graphs: StepGraphs, rows: int) -> None:
    tokens = np.random.default_rng(0).integers(graphs.forward.config.vocab_size, size=_TOKENS)
    for start in range(0, _TOKENS, rows):
        tree = TokenTree.chain(tokens[start : start + rows].tolist())
        launch = graphs.launch(StepShape(rows, 1, has_head=False))
        slot = SlotRange(0, CONTEXT + start)
        launch.memory.inputs.pack([StepInput(slot, tree, has_head=False)])
        launch.start()
        launch.wait()
