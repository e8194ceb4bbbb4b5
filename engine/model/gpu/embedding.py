"""Where a step finds the embeddings of its tokens: beside the head on the device, or on the host.

A step reads a few rows of the embedding, which is a large part of what a small GPU holds: 1.1 GB of the
7b model. So it stays on the host, mapped from the model's file, and the rows of a step go up with the
rest of its inputs; not where the head is the same matrix, which each step reads as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import torch

from kernels.weight import Weight

_PAGE = 4096  # bytes that a system maps at a time, at least
Parts = dict[str, tuple[tuple[int, ...], torch.dtype]]  # of a buffer, by name
_VALUES, _SCALES = "embedded", "embedded_scales"


class Lookup(NamedTuple):
    """What `embed_rows` reads: x_r = table[tokens[r]]."""

    tokens: torch.Tensor
    table: Weight


@dataclass(frozen=True, slots=True)
class Embedding:
    """The `table` [V, H] on the host or on the device. On the host it may be mapped, and is only read."""

    table: Weight
    is_on_host: bool
    # On the host, of each token in a row what the table has in columns: [V, numbers].
    _scale_rows: torch.Tensor | None = field(default=None, repr=False)

    @classmethod
    def on_host(cls, table: Weight) -> Self:
        """Read it once, so that no step waits for a disk."""
        table.values.flatten().view(torch.uint8)[::_PAGE].sum()
        scales = table.scales
        return cls(
            table,
            is_on_host=True,
            _scale_rows=None if scales is None else scales.flatten(0, -2).T.contiguous(),
        )

    @property
    def hosted(self) -> "Embedding | None":
        """Itself, where its rows have to go up with a step."""
        return self if self.is_on_host else None

    def sent(self, rows: int) -> Parts:
        """The arrays that go up for so many rows: a table of the same form, with as many tokens."""
        values, scales = self.table.values, self.table.scales
        parts: Parts = {_VALUES: ((rows, values.shape[1]), values.dtype)}
        if scales is not None:
            parts[_SCALES] = ((*scales.shape[:-1], rows), scales.dtype)
        return parts

    def send(self, token_ids: np.ndarray, arrays: Mapping[str, torch.Tensor], rows: slice) -> None:
        """Write the rows of some tokens into those of the arrays, on the host."""
        ids = torch.from_numpy(token_ids)
        torch.index_select(self.table.values, 0, ids, out=arrays[_VALUES][rows])
        if self._scale_rows is not None:
            target = arrays[_SCALES][..., rows]
            target.copy_(self._scale_rows.index_select(0, ids).T.reshape(target.shape))

    def arrived(self, arrays: Mapping[str, torch.Tensor]) -> Weight:
        """What was sent, as a table: row r is of the step's row r."""
        return Weight(self.table.quantization, arrays[_VALUES], arrays.get(_SCALES))
