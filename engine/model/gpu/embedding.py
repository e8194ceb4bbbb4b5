"""Where a step finds the embeddings of its tokens: beside the head on the device, or on the host.

A step reads a few rows of the embedding, which is a large part of what a small GPU holds: 1.1 GB of the
7b model. So it stays on the host, mapped from the model's file, and the rows of a step go up with the
rest of its inputs; not where the head is the same matrix, which each step reads as a whole.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from kernels.weight import Weight


class Lookup(NamedTuple):
    """What `embed_rows` reads: x_r = table[tokens[r]]."""

    tokens: torch.Tensor
    table: Weight


@dataclass(frozen=True, slots=True)
class Embedding:
    """The `table` [V, H] on the host or on the device. On the host it may be mapped, and is only read."""

    table: Weight
    is_on_host: bool

    @property
    def hosted(self) -> "Embedding | None":
        """Itself, where its rows have to go up with a step."""
        return self if self.is_on_host else None

    @property
    def sent_type(self) -> torch.dtype:
        """What its rows are sent in, so that no number is rounded."""
        return self.table.values.dtype if self.table.quantization == "float" else torch.float32

    def send(self, token_ids: np.ndarray, out: torch.Tensor) -> None:
        """Write the rows of some tokens to `out` [tokens, H] of that type; the table is on the host."""
        ids = torch.from_numpy(token_ids)
        if self.table.quantization == "float":
            torch.index_select(self.table.values, 0, ids, out=out)
        else:
            out.copy_(self.table.rows(ids.long()))
