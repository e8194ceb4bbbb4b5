"""The embedding of a model, on the device or on the host.

A step reads only a few rows of the embedding, which would fill much of a small GPU: 1.1 GB for the
7b model. So it stays on the host, mapped from the model's file, and a step's rows are sent with its
other inputs. An embedding that is also the head is on the device, since each step reads all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import torch

from kernels.weight import Weight

_PAGE = 4096  # bytes of the smallest memory page
Parts = dict[str, tuple[tuple[int, ...], torch.dtype]]  # shapes and types of a buffer, by name
_VALUES, _SCALES = "embedded", "embedded_scales"


class Lookup(NamedTuple):
    """The arguments of `embed_rows`: x_r = table[tokens[r]]."""

    tokens: torch.Tensor
    table: Weight


@dataclass(frozen=True, slots=True)
class Embedding:
    """The `table` [V, H], on the host or the device. On the host it may be a read-only mapping."""

    table: Weight
    is_on_host: bool
    # On the host: the table's scales, which are in columns, as one row per token: [V, numbers].
    _scale_rows: torch.Tensor | None = field(default=None, repr=False)

    @classmethod
    def on_host(cls, table: Weight) -> Self:
        """Keep a table on the host, read once so that no step waits for the disk."""
        table.values.flatten().view(torch.uint8)[::_PAGE].sum()
        scales = table.scales
        return cls(
            table,
            is_on_host=True,
            _scale_rows=None if scales is None else scales.flatten(0, -2).T.contiguous(),
        )

    def sent(self, rows: int) -> Parts:
        """Return the arrays to send: a table of the same form with `rows` tokens, if on the host."""
        if not self.is_on_host:
            return {}
        values, scales = self.table.values, self.table.scales
        parts: Parts = {_VALUES: ((rows, values.shape[1]), values.dtype)}
        if scales is not None:
            parts[_SCALES] = ((*scales.shape[:-1], rows), scales.dtype)
        return parts

    def send(self, token_ids: np.ndarray, arrays: Mapping[str, torch.Tensor], rows: slice) -> None:
        """Copy the rows of these tokens, if on the host, into `rows` of the host's arrays."""
        if not self.is_on_host:
            return
        ids = torch.from_numpy(token_ids)
        torch.index_select(self.table.values, 0, ids, out=arrays[_VALUES][rows])
        if self._scale_rows is not None:
            target = arrays[_SCALES][..., rows]
            target.copy_(self._scale_rows.index_select(0, ids).T.reshape(target.shape))

    def lookup(self, arrays: Mapping[str, torch.Tensor], tokens: torch.Tensor) -> Lookup:
        """Return where a step finds its embeddings; row r of a sent table belongs to its row r."""
        if not self.is_on_host:
            return Lookup(tokens, self.table)
        table = Weight(self.table.quantization, arrays[_VALUES], arrays.get(_SCALES))
        return Lookup(torch.arange(len(tokens), dtype=torch.int32, device=tokens.device), table)
