"""A model of given sizes without meaning, to time the steps of a real one."""

import numpy as np

from kernels.cpu_forward.packing import empty, padded
from kernels.cpu_forward.state import Matrix, Model
from kernels.cpu_forward.tiles import GROUP, PANEL


def blank_model(
    *,
    num_layers: int,
    hidden_size: int,
    intermediate_size: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    vocab_size: int,
) -> Model:
    """Return it. Reading its weights takes as long as reading others."""
    queries, inner = num_heads * head_dim, padded(intermediate_size, PANEL)
    heads = queries + 2 * num_kv_heads * head_dim
    return Model(
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        epsilon=1e-6,
        qkv=_matrix(num_layers, heads, hidden_size),
        o=_matrix(num_layers, hidden_size, queries),
        gate_up=_matrix(num_layers, 2 * inner, hidden_size),
        down=_matrix(num_layers, hidden_size, inner),
        head=_matrix(1, vocab_size, hidden_size),
    )


def _matrix(layers: int, outputs: int, inputs: int) -> Matrix:
    panels, quarters = padded(outputs, PANEL) // PANEL, padded(inputs, GROUP) // 4
    codes = empty((layers, panels, quarters, PANEL, 4), np.uint8)
    codes[:] = 1  # pages that nobody has written share one, which a cache holds
    numbers = np.zeros((layers, panels * PANEL), np.float32)
    return Matrix(codes, numbers, numbers)
