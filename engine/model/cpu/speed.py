"""How fast this machine steps, without any model: the time of a piece of one."""

import time

import numpy as np

from engine.model.model_config import QWEN_SHAPES
from engine.progress import Progress, shown_if_long
from kernels.cpu_forward import BLOCK, ForwardInput, Runner, blank_model, slot_width

PROBED_CONTEXT = 16  # tokens behind which a step is timed; a start has no time to fill more
PROBED_ROWS = 8  # of a wider step than one row: wide steps alone may be slow
_SHAPE = QWEN_SHAPES["1.5b"]
_LAYERS = 2  # with the head 330 MB, more than a processor's caches hold
_STEPS = 5  # the fastest counts: noise only adds


def measured_ms_per_gb(threads: int, progress: Progress) -> float:
    """Return the ms of a step of eight rows for each GB of weights that it reads: a second."""
    shape = _SHAPE
    model = blank_model(
        num_layers=_LAYERS,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_heads=shape.num_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab_size,
    )
    runner = Runner(model, shape.hidden_size, PROBED_ROWS, threads)
    task = "compiling for this processor, once on this machine, about half a minute"
    shown_if_long(progress, task, runner.compile)
    step, embeddings = _step(), np.zeros((PROBED_ROWS, shape.hidden_size), np.float32)
    return min(_ms(runner, embeddings, step) for _ in range(_STEPS)) / (model.num_bytes / 1e9)


def _step() -> ForwardInput:
    rows, half = PROBED_ROWS, _SHAPE.head_dim // 2
    slots = (_LAYERS, _SHAPE.num_kv_heads, 4 * PROBED_CONTEXT, slot_width(_SHAPE.head_dim))
    return ForwardInput(
        num_rows=rows,
        length=PROBED_CONTEXT,
        sees=np.tri(rows, dtype=bool),
        cosines=np.ones((rows, half), np.float32),
        sines=np.zeros((rows, half), np.float32),
        keys=np.zeros(slots, np.float32),
        values=np.zeros(slots, np.float32),
        logits=np.zeros((rows, _SHAPE.vocab_size), np.float32),
        peaks=np.zeros((rows, -(-_SHAPE.vocab_size // BLOCK)), np.float32),
    )


def _ms(runner: Runner, embeddings: np.ndarray, step: ForwardInput) -> float:
    began = time.perf_counter()
    runner.run(embeddings, step)
    return 1000 * (time.perf_counter() - began)
