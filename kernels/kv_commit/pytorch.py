"""The commit in PyTorch. See the package for the contract."""

import torch

from kernels.batch import BatchMetadata


def kv_commit(keys: torch.Tensor, values: torch.Tensor, batch: BatchMetadata) -> None:
    """Position b + l + i takes what stands at b + l + rows[i], for all i at once."""
    for span in batch.rows_on_host.spans:
        if span.num_kept:
            rows = batch.commit_rows[span.place, : span.num_kept].long() + span.kept_end
            for held in (keys, values):
                held[:, :, span.kept_end : span.kept_end + span.num_kept] = held[:, :, rows]
