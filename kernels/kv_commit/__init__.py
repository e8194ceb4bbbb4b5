"""Keeps the accepted rows of the last step, in all layers at once.

Contract of `kv_commit(keys, values, batch)`, here in PyTorch and in `triton_kernel`:

- `keys`, `values` [layers, kv heads, positions, d].
- For each sequence s with base b and length l = `batch.commit_lengths[s]`, and for each
  i < `batch.commit_counts[s]`: position b + l + i takes what stands at
  b + l + `batch.commit_rows[s, i]`. Rows ascend, so commit_rows[s, i] >= i.
- All other positions stay as they are.
"""

import torch

from kernels.batch import BatchMetadata


def kv_commit(keys: torch.Tensor, values: torch.Tensor, batch: BatchMetadata) -> None:
    """Position b + l + i takes what stands at b + l + rows[i], for all i at once."""
    for span in batch.rows_on_host.spans:
        if span.num_kept:
            rows = batch.commit_rows[span.place, : span.num_kept].long() + span.kept_end
            for held in (keys, values):
                held[:, :, span.kept_end : span.kept_end + span.num_kept] = held[:, :, rows]
