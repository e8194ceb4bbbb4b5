"""One forward pass of a Qwen2 over the rows of a step, as one compiled call that threads share."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np

from kernels.compiled import inner_njit, njit
from kernels.cpu_forward.attention import attend
from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.product import multiply_panel
from kernels.cpu_forward.rows import gate, largest, normalize, quantize, quantize_group, rotate
from kernels.cpu_forward.team import shared
from kernels.cpu_forward.tiles import PANEL, QUERIES

PHASES_OF_LAYER, PHASES_OF_HEAD = 9, 2  # of `forward`
_ONE = np.float32(1.0)


def _sources() -> str:
    """Sum of this package's code and its unit: numba sees neither where it keeps what it compiled."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.blake2b(b"".join((*texts, host_unit().name.encode()))).hexdigest()


@shared()
def _normalize(row, following, scratch, layer, model, step, buffers):
    normalize(buffers.residual[row], buffers.normed, row, model.epsilon)


@shared(looks_ahead=True)
def _project(panel, following, scratch, layer, model, step, buffers):
    outputs = scratch.outputs[0]
    _multiply(buffers.normed, model.qkv, layer, panel, following, step.num_rows, outputs)
    _write(outputs, panel, step.num_rows, buffers.heads)


@inner_njit
def _scale(sums, matrix, layer, panel, num_rows):
    """Make the sums of a panel its outputs: the weights' scale and the bias."""
    start = panel * PANEL
    scale, bias = matrix.scale[layer, start:], matrix.bias[layer, start:]
    for row in range(num_rows):
        for i in range(PANEL):
            sums[row, i] = sums[row, i] * scale[i] + bias[i]


@inner_njit
def _multiply(codes, matrix, layer, panel, following, num_rows, outputs):
    """Set float32 [rows, PANEL]: one panel of a linear layer."""
    multiply_panel(codes, num_rows, matrix, layer, panel, following, outputs)
    _scale(outputs, matrix, layer, panel, num_rows)


@inner_njit
def _write(outputs, panel, num_rows, out):
    """Copy what there is of a panel to its place."""
    start = panel * PANEL
    for row in range(num_rows):
        for i in range(min(PANEL, out.shape[1] - start)):
            out[row, start + i] = outputs[row, i]


@inner_njit
def _add(outputs, panel, num_rows, out):
    """Add what there is of a panel in its place."""
    start = panel * PANEL
    for row in range(num_rows):
        for i in range(min(PANEL, out.shape[1] - start)):
            out[row, start + i] += outputs[row, i]


@shared()
def _rotate(row, following, scratch, layer, model, step, buffers):
    """Queries to their buffer, the key and value to the row's slot of the cache."""
    size, heads = model.head_dim, buffers.heads[row]
    cosines, sines = step.cosines[row], step.sines[row]
    factor = np.float32(1.0 / math.sqrt(size))
    for head in range(model.num_heads):
        rotate(heads, head * size, cosines, sines, factor, buffers.queries[row], head * size)
    slot = step.length + row
    for kv_head in range(model.num_kv_heads):
        start = (model.num_heads + kv_head) * size
        rotate(heads, start, cosines, sines, _ONE, step.keys[layer, kv_head, slot], 0)
        start += model.num_kv_heads * size
        for i in range(size):
            step.values[layer, kv_head, slot, i] = heads[start + i]


@shared()
def _attend(task, following, scratch, layer, model, step, buffers):
    kv_head, block = task % model.num_kv_heads, task // model.num_kv_heads
    attend(kv_head, block, scratch, layer, model, step, buffers)


@shared()
def _quantize_attended(row, following, scratch, layer, model, step, buffers):
    quantize(buffers.attended[row], buffers.mixed, row, _ONE)


@shared(looks_ahead=True)
def _add_attended(panel, following, scratch, layer, model, step, buffers):
    outputs = scratch.outputs[0]
    _multiply(buffers.mixed, model.o, layer, panel, following, step.num_rows, outputs)
    _add(outputs, panel, step.num_rows, buffers.residual)


@shared(looks_ahead=True)
def _gate(pair, following, scratch, layer, model, step, buffers):
    """A panel of gates and the ups that belong to it; what comes out is one group of inputs."""
    gates, ups, gated = scratch.outputs[0], scratch.outputs[1], scratch.outputs[2]
    _multiply(buffers.normed, model.gate_up, layer, 2 * pair, 2 * pair + 1, step.num_rows, gates)
    _multiply(buffers.normed, model.gate_up, layer, 2 * pair + 1, 2 * following, step.num_rows, ups)
    for row in range(step.num_rows):
        gate(gates[row], ups[row], gated[row])
        quantize_group(gated[row], buffers.gated, row, pair, _ONE)


@shared(looks_ahead=True)
def _add_gated(panel, following, scratch, layer, model, step, buffers):
    outputs = scratch.outputs[0]
    _multiply(buffers.gated, model.down, layer, panel, following, step.num_rows, outputs)
    _add(outputs, panel, step.num_rows, buffers.residual)


@shared(looks_ahead=True)
def _score_tokens(panel, following, scratch, layer, model, step, buffers):
    outputs = scratch.outputs[0]
    _multiply(buffers.normed, model.head, layer, panel, following, step.num_rows, outputs)
    _write(outputs, panel, step.num_rows, step.logits)
    num_there = min(PANEL, step.logits.shape[1] - panel * PANEL)
    for row in range(step.num_rows):
        step.peaks[row, panel] = largest(outputs[row, :num_there])


def _compiled(sources: str) -> Any:
    """numba keys what it keeps on disk by a function's code and by what that closes over."""

    @njit(nogil=True, cache=True)
    def forward(counters, scratch, model, step, buffers):
        """Leave the logits of the step's rows in `step.logits`, their keys and values in its slots.

        `buffers.residual` holds the rows' embeddings. Each thread calls this with its own `scratch`.
        """
        # `sources` is in the key of numba's cache because the function closes over it.
        rows, phase = step.num_rows, len(sources) - len(sources)
        blocks = -(-rows * model.num_heads // model.num_kv_heads // QUERIES)
        for layer in range(model.num_layers):
            given = (scratch, layer, model, step, buffers)
            phase = _normalize(counters, phase, rows, given)
            phase = _project(counters, phase, model.qkv.codes.shape[1], given)
            phase = _rotate(counters, phase, rows, given)
            phase = _attend(counters, phase, model.num_kv_heads * blocks, given)
            phase = _quantize_attended(counters, phase, rows, given)
            phase = _add_attended(counters, phase, model.o.codes.shape[1], given)
            phase = _normalize(counters, phase, rows, given)
            phase = _gate(counters, phase, model.gate_up.codes.shape[1] // 2, given)
            phase = _add_gated(counters, phase, model.down.codes.shape[1], given)
        if step.logits.shape[0] > 0:
            given = (scratch, 0, model, step, buffers)
            phase = _normalize(counters, phase, rows, given)
            _score_tokens(counters, phase, model.head.codes.shape[1], given)

    return forward


forward = _compiled(_sources())
