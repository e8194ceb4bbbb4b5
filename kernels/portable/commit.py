"""What the step before accepted, moved to where it stays."""

import torch

from kernels.batch import BatchMetadata
from kernels.portable.rows import rows_of


def kv_commit(keys: torch.Tensor, values: torch.Tensor, batch: BatchMetadata) -> None:
    """Position b + l + i takes what stands at b + l + rows[i], for all i at once."""
    for span in rows_of(batch).spans:
        if span.num_kept:
            rows = batch.commit_rows[span.place, : span.num_kept].long() + span.kept_end
            for held in (keys, values):
                held[:, :, span.kept_end : span.kept_end + span.num_kept] = held[:, :, rows]
