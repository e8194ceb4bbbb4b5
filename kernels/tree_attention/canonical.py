"""Tree attention on the CPU in canonical order. See the package for the contract.

A key always stands in the slot of its position, whether it is committed or in flight: a run's
path is written to the slots behind the committed tokens before the run is answered. Whole chunks
are reduced, masked slots add exact zeros, and the query heads of a group are packed as rows of
one product whose row count is a multiple of four: below that, BLAS takes another kernel with
another order of summation. So plain decoding and every shape of tree give a row equal bits.
"""

import torch
from torch.nn import functional

from kernels.tree_attention.plan import TreePlan, TreeRun

_PRODUCT_ROWS = 4


def tree_attention(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: TreePlan
) -> torch.Tensor:
    """Answer the tree's runs one after the other; each reads one straight line of slots."""
    if len(plan.runs) == 1:
        return _answer(queries, keys, values, plan, plan.runs[0])
    out = torch.empty_like(queries)
    flight = slice(plan.length, plan.length + queries.shape[0])
    tree_keys, tree_values = keys[:, flight].clone(), values[:, flight].clone()
    for run in plan.runs:
        if not run.leads:
            line = slice(plan.length, plan.length + len(run.path))
            keys[:, line] = tree_keys[:, run.path]
            values[:, line] = tree_values[:, run.path]
        out[run.rows] = _answer(queries[run.rows], keys, values, plan, run)
    keys[:, flight] = tree_keys
    values[:, flight] = tree_values
    return out


def _answer(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: TreePlan, run: TreeRun
) -> torch.Tensor:
    rows, heads, dim = queries.shape
    kv_heads = keys.shape[0]
    group = heads // kv_heads
    padding = -(rows * group) % _PRODUCT_ROWS
    packed = queries.reshape(rows, kv_heads, group, dim).transpose(0, 1)
    packed = packed.reshape(kv_heads, rows * group, dim)
    if padding:
        packed = functional.pad(packed, (0, 0, 0, padding))
    mask = plan.mask(run, group, padding, queries.dtype)
    slots = mask.shape[1]
    out = functional.scaled_dot_product_attention(
        packed[None], keys[None, :, :slots], values[None, :, :slots], attn_mask=mask
    )[0, :, : rows * group]
    return out.view(kv_heads, rows, group, dim).transpose(0, 1).reshape(rows, heads, dim)
