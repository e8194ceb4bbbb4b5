"""The commit by plain copies. See the package for the contract."""

import torch

from kernels.forest import Forest


def kv_commit(keys: torch.Tensor, values: torch.Tensor, forest: Forest) -> None:
    """Position b + l + i takes what stands at b + l + rows[i], for all i at once."""
    counts = forest.commit_counts.tolist()
    for sequence in (sequence for sequence, count in enumerate(counts) if count):
        rows = forest.commit_rows[sequence, : counts[sequence]].long()
        end = int(forest.bases[sequence] + forest.commit_lengths[sequence])
        for held in (keys, values):
            held[:, :, end : end + len(rows)] = held[:, :, end + rows]
