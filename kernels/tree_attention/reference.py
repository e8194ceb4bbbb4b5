"""Tree attention by its formula, in plain PyTorch. See the package for the contract."""

import torch

from kernels.tree_attention.plan import TreePlan


def tree_attention(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: TreePlan
) -> torch.Tensor:
    """o = softmax(q K^T / sqrt(d) + mask) V over the slots 0..length+rows-1."""
    rows, heads, dim = queries.shape
    length = plan.length
    group = heads // keys.shape[0]
    keys = keys[:, : length + rows].repeat_interleave(group, dim=0)  # [heads, slots, d]
    values = values[:, : length + rows].repeat_interleave(group, dim=0)
    visible = torch.cat([torch.ones(rows, length, dtype=torch.bool), plan.ancestors], dim=1)
    scores = torch.einsum("rhd,hsd->hrs", queries, keys) / dim**0.5
    weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
    return torch.einsum("hrs,hsd->rhd", weights, values)
