"""Attention of the rows of a tree over the keys of a sequence, in the order of their positions.

Sixteen query vectors of one key-value head are answered together, each in its own lane: rows of the
tree times the query heads that share the head. All sums run over the positions in their order,
and what a row does not see adds an exact zero. So a row has the bits of plain decoding in any tree.
"""

import numpy as np

from kernels.compiled import inner_njit
from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.rows import exponential
from kernels.cpu_forward.tiles import QUERIES, emit_floats, float_rows, tile

TILE_ROWS = float_rows(host_unit())
_multiply_rows = tile(emit_floats, TILE_ROWS)
_BYTES = 4
_NOTHING = np.float32(-np.inf)
_ZERO = np.float32(0.0)


@inner_njit(error_model="numpy")
def attend(kv_head, block, scratch, layer, model, step, buffers):
    """Answer query vectors `block * QUERIES` and on of a key-value head."""
    group = model.num_heads // model.num_kv_heads
    first = block * QUERIES
    count = min(QUERIES, step.num_rows * group - first)
    num_rows = (first + count - 1) // group + 1  # rows behind them see nothing that these do not
    positions = step.length + num_rows
    _gather(kv_head, first, count, group, scratch.queries, model, buffers)
    _score(step.keys[layer, kv_head], positions, model.head_dim, scratch)
    for lane in range(count):
        sees = step.sees[(first + lane) // group]
        for row in range(num_rows):
            if not sees[row]:
                scratch.scores[step.length + row, lane] = _NOTHING
    _exponentiate(scratch.scores, positions, scratch.largest, scratch.totals)
    _mix(step.values[layer, kv_head], positions, count, scratch)
    for lane in range(count):
        row, head = (first + lane) // group, kv_head * group + (first + lane) % group
        out = buffers.attended[row, head * model.head_dim : (head + 1) * model.head_dim]
        mixed, total = scratch.mixed[lane], scratch.totals[lane]
        for i in range(len(out)):
            out[i] = mixed[i] / total


@inner_njit(error_model="numpy")
def _gather(kv_head, first, count, group, queries, model, buffers):
    """Set float32 [d, QUERIES], a query vector in each lane."""
    for lane in range(count):
        row, head = (first + lane) // group, kv_head * group + (first + lane) % group
        query = buffers.queries[row, head * model.head_dim : (head + 1) * model.head_dim]
        for i in range(len(query)):
            queries[i, lane] = query[i]


@inner_njit(error_model="numpy")
def _score(keys, positions, head_dim, scratch):
    """Set float32 [positions, QUERIES]; up to TILE_ROWS - 1 slots behind are scored in vain."""
    key_bytes = keys.shape[1] * _BYTES
    queries, lane_bytes = scratch.queries.ctypes.data, QUERIES * _BYTES
    for start in range(0, positions, TILE_ROWS):
        of, to = keys[start:].ctypes.data, scratch.scores[start:].ctypes.data
        _multiply_rows((of, key_bytes, _BYTES, queries, lane_bytes, to, lane_bytes, head_dim))


@inner_njit(error_model="numpy", fastmath={"contract"})
def _exponentiate(scores, positions, largest, totals):
    """exp(score - largest) of each lane, and their sum, from the first position on.

    Lanes that no query has hold what an earlier task left there, and nobody reads what comes out.
    """
    for lane in range(QUERIES):
        largest[lane], totals[lane] = _NOTHING, _ZERO
    for position in range(positions):
        for lane in range(QUERIES):
            largest[lane] = max(largest[lane], scores[position, lane])
    for position in range(positions):
        for lane in range(QUERIES):
            weight = exponential(scores[position, lane] - largest[lane])
            scores[position, lane] = weight
            totals[lane] += weight


@inner_njit(error_model="numpy")
def _mix(values, positions, count, scratch):
    """Set float32 [QUERIES, d]: the values by their weights, not divided by the totals."""
    value_bytes = values.shape[1] * _BYTES
    lane_bytes = QUERIES * _BYTES
    for lane in range(0, count, TILE_ROWS):
        weights = scratch.scores[0, lane:].ctypes.data
        for start in range(0, values.shape[1], QUERIES):
            right = values[0, start:].ctypes.data
            to = scratch.mixed[lane, start:].ctypes.data
            _multiply_rows(
                (weights, _BYTES, lane_bytes, right, value_bytes, to, value_bytes, positions)
            )
