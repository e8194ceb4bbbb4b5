"""The commit by plain copies. See the package for the contract."""

import torch

from kernels.batch import BatchMetadata


def kv_commit(keys: torch.Tensor, values: torch.Tensor, batch: BatchMetadata) -> None:
    """Position b + l + i takes what stands at b + l + rows[i], for all i at once."""
    counts = batch.commit_counts.tolist()
    for sequence in (sequence for sequence, count in enumerate(counts) if count):
        rows = batch.commit_rows[sequence, : counts[sequence]].long()
        end = int(batch.bases[sequence] + batch.commit_lengths[sequence])
        for held in (keys, values):
            held[:, :, end : end + len(rows)] = held[:, :, end + rows]
