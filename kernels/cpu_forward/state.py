"""What one forward pass reads and writes, as numba takes it: named arrays, all contiguous."""

from typing import NamedTuple

import numpy as np


class Matrix(NamedTuple):
    """The linear layers of one kind, with 8-bit weights.

    `codes` uint8 [layers, panels, inputs / 4, PANEL, 4], `scale` and `bias` float32
    [layers, outputs]; inputs and outputs are filled up to whole groups and panels.
    """

    codes: np.ndarray
    scale: np.ndarray
    bias: np.ndarray

    @property
    def unwritable(self) -> "Matrix":
        """The same memory, which may be mapped from a file, for reading alone."""
        views = [held.view() for held in self]
        for view in views:
            view.flags.writeable = False
        return Matrix(*views)


class Model(NamedTuple):
    """Shapes and weights. The norms' weights are folded into the matrices behind them.

    In `gate_up`, a panel of ups follows each panel of gates.
    """

    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    epsilon: float
    qkv: Matrix
    o: Matrix
    gate_up: Matrix
    down: Matrix
    head: Matrix

    @property
    def num_bytes(self) -> int:
        """Memory of the weights that a step reads."""
        matrices = (self.qkv, self.o, self.gate_up, self.down, self.head)
        return sum(one.codes.nbytes for one in matrices)


class Codes(NamedTuple):
    """Rows in 8 bits: `values` int8 [rows, inputs].

    For each group of inputs the start of its sums int32 and its scale float32 [rows, groups].
    """

    values: np.ndarray
    starts: np.ndarray
    scales: np.ndarray


class ThreadScratch(NamedTuple):
    """A thread's own room, float32."""

    outputs: np.ndarray  # [3, rows, PANEL]
    queries: np.ndarray  # [head_dim, QUERIES]
    scores: np.ndarray  # [positions, QUERIES]
    mixed: np.ndarray  # [QUERIES, head_dim of a slot]
    largest: np.ndarray  # [QUERIES]
    totals: np.ndarray  # [QUERIES]


class Buffers(NamedTuple):
    """What the threads hand to each other, float32 [rows, ...] and codes."""

    residual: np.ndarray  # hidden size
    heads: np.ndarray  # queries, keys and values, as projected
    queries: np.ndarray  # rotated, and divided by sqrt(head_dim)
    attended: np.ndarray
    normed: Codes
    mixed: Codes  # attended
    gated: Codes


class ForwardInput(NamedTuple):
    """The rows of a step, behind `length` committed tokens.

    `sees` bool [rows, rows]: row i sees row j. `cosines` and `sines` float32 [rows, head_dim / 2].
    `keys` and `values` float32 [layers, kv heads, slots, head_dim filled up], the sequence's own.
    `logits` float32 [rows, vocab], or [0, vocab] where no head is wanted; `peaks` float32
    [rows, panels of the head], the largest logit of each panel.
    """

    num_rows: int
    length: int
    sees: np.ndarray
    cosines: np.ndarray
    sines: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    logits: np.ndarray
    peaks: np.ndarray
