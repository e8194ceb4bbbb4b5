"""The threads of a forward pass and their working memory."""

from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import numba
import numpy as np

from kernels.cpu_forward.forward import PHASES_OF_HEAD, PHASES_OF_LAYER, forward
from kernels.cpu_forward.packing import empty, padded
from kernels.cpu_forward.state import Buffers, Codes, ForwardInput, Model, ThreadScratch
from kernels.cpu_forward.team import COUNTERS
from kernels.cpu_forward.tiles import GROUP, PANEL, QUERIES


class Runner:
    """Runs steps of up to `max_rows` rows, one at a time, on `num_threads` threads."""

    def __init__(self, model: Model, hidden_size: int, max_rows: int, num_threads: int) -> None:
        """Raises ValueError for matrices that are not of the model's sizes: none would be noticed."""
        _check_sizes(model, hidden_size)
        # The pass is compiled for weights that it may not write.
        kinds = ("qkv", "o", "gate_up", "down", "head")
        model = model._replace(**{kind: getattr(model, kind).unwritable for kind in kinds})
        self._model = model
        self._max_rows = max_rows
        self._buffers = _new_buffers(model, hidden_size, max_rows)
        self._scratch = [_new_scratch(model, max_rows, 0) for _ in range(num_threads)]
        num_phases = PHASES_OF_LAYER * model.num_layers + PHASES_OF_HEAD
        self._counters = empty((num_phases, COUNTERS), np.int64)
        self._others = ThreadPoolExecutor(max(1, num_threads - 1), "forward")

    def run(self, embeddings: np.ndarray, step: ForwardInput) -> None:
        """Run the model over `embeddings` float32 [rows, hidden size]; see `forward`."""
        self._make_room(step.keys.shape[2])
        self._buffers.residual[: step.num_rows] = embeddings
        self._counters[:] = 0
        work = partial(forward, self._counters)
        given = (self._model, step, self._buffers)
        others = [self._others.submit(work, scratch, *given) for scratch in self._scratch[1:]]
        try:
            work(self._scratch[0], *given)
        finally:  # who has not begun is not needed; who has must be out before the next step
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()

    def compile(self) -> None:
        """Compile the pass, or load what was compiled before: 20 seconds, or a tenth of one.

        The first `run` would do it otherwise.
        """
        nothing = np.zeros((0, 0), np.float32)
        cache = np.zeros((0, 0, 0, 0), np.float32)
        nowhere = (nothing, nothing)
        step = ForwardInput(0, 0, nothing.astype(bool), *nowhere, cache, cache, *nowhere)
        given = (self._counters, self._scratch[0], self._model, step, self._buffers)
        forward.compile(tuple(numba.typeof(argument) for argument in given))

    def _make_room(self, positions: int) -> None:
        if self._scratch[0].scores.shape[0] < positions:
            self._scratch = [
                _new_scratch(self._model, self._max_rows, positions) for _ in self._scratch
            ]


def slot_width(head_dim: int) -> int:
    """Numbers that a key or value takes in a slot of the cache."""
    return padded(head_dim, QUERIES)


def _check_sizes(model: Model, hidden_size: int) -> None:
    queries = model.num_heads * model.head_dim
    heads = queries + 2 * model.num_kv_heads * model.head_dim
    inner = model.down.codes.shape[2] * 4  # filled up
    for matrix, layers, outputs, inputs in (
        (model.qkv, model.num_layers, heads, hidden_size),
        (model.o, model.num_layers, hidden_size, queries),
        (model.gate_up, model.num_layers, 2 * inner, hidden_size),
        (model.down, model.num_layers, hidden_size, inner),
        (model.head, 1, model.head.scale.shape[1], hidden_size),
    ):
        panels, quarters = padded(outputs, PANEL) // PANEL, padded(inputs, GROUP) // 4
        wanted = (panels, quarters, PANEL, 4), (panels * PANEL,), (panels * PANEL,)
        if any(len(held) < layers for held in matrix) or wanted != tuple(
            held.shape[1:] for held in matrix
        ):
            raise ValueError(
                f"codes of {matrix.codes.shape}, scales of {matrix.scale.shape} and biases of "
                f"{matrix.bias.shape} for {layers} layers with {outputs} outputs of {inputs} inputs"
            )


def _new_buffers(model: Model, hidden_size: int, rows: int) -> Buffers:
    queries = model.num_heads * model.head_dim
    heads = queries + 2 * model.num_kv_heads * model.head_dim
    return Buffers(
        residual=empty((rows, hidden_size), np.float32),
        heads=empty((rows, heads), np.float32),
        queries=empty((rows, queries), np.float32),
        attended=empty((rows, queries), np.float32),
        normed=_new_codes(hidden_size, rows),
        mixed=_new_codes(queries, rows),
        gated=_new_codes(model.gate_up.scale.shape[1] // 2, rows),
    )


def _new_codes(inputs: int, rows: int) -> Codes:
    groups = padded(inputs, GROUP) // GROUP
    return Codes(
        values=empty((rows, groups * GROUP), np.int8),
        starts=empty((rows, groups), np.int32),
        scales=empty((rows, groups), np.float32),
    )


def _new_scratch(model: Model, rows: int, positions: int) -> ThreadScratch:
    return ThreadScratch(
        outputs=empty((3, rows, PANEL), np.float32),
        queries=empty((model.head_dim, QUERIES), np.float32),
        scores=empty((positions, QUERIES), np.float32),
        mixed=empty((QUERIES, slot_width(model.head_dim)), np.float32),
        largest=empty((QUERIES,), np.float32),
        totals=empty((QUERIES,), np.float32),
    )
