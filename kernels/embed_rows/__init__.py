"""Looks the rows' tokens up, and prepares the first norm.

Contract of `embed_rows(tokens, table, norm_weight, stream)`, here in PyTorch and in `triton_kernel`:

    x_r = table[tokens[r]]

- Writes x and what follows from it to `stream`, a `ResidualStream`.
- `tokens` int32 [R]; rows that hold nothing hold any token. `norm_weight` float32 [H].
- `table` is a `Weight` of V outputs and H inputs, `float` or in a model file's 4, 6 or 8 bits.
"""

import torch

from kernels.residual import ResidualStream
from kernels.weight import Weight


def embed_rows(
    tokens: torch.Tensor, table: Weight, norm_weight: torch.Tensor, stream: ResidualStream
) -> None:
    """x = table[tokens], and what follows from it."""
    stream.write(table.rows(tokens.long()), norm_weight)
