"""Batch attention by its formula, in plain PyTorch. See the package for the contract."""

import torch

from kernels.batch import BatchMetadata
from kernels.scratch import Scratch


def batch_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    batch: BatchMetadata,
    scratch: Scratch,  # noqa: ARG001 - the formula needs none
    out: torch.Tensor,
) -> None:
    """o_r = softmax(q_r . K_r^T / sqrt(d)) V_r, row by row and in float32."""
    parents = batch.parents.tolist()
    for row, sequence in enumerate(batch.sequences.tolist()):
        if sequence >= 0:
            seen = _positions(batch, parents, row, sequence)
            out[row] = _attend(queries[row], keys[:, seen], values[:, seen]).to(out.dtype)


def _positions(batch: BatchMetadata, parents: list[int], row: int, sequence: int) -> torch.Tensor:
    """Arena positions of the sequence's committed tokens, the row's ancestors and itself."""
    base, length = int(batch.bases[sequence]), int(batch.lengths[sequence])
    first_row = int(batch.first_rows[sequence])
    path = []
    while row >= 0:
        path.append(base + length + row - first_row)
        row = parents[row]
    return torch.tensor([*range(base, base + length), *reversed(path)], device=batch.bases.device)


def _attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """One row: `query` [heads, d], `keys` and `values` [kv heads, seen, d] -> [heads, d]."""
    heads, dim = query.shape
    packed = query.float().view(keys.shape[0], -1, dim)  # [kv heads, group, d]
    weights = torch.softmax(packed @ keys.float().mT / dim**0.5, dim=-1)
    return torch.matmul(weights, values.float()).view(heads, dim)
