"""Attention of a token tree's rows over a KV cache.

Contract, in every implementation of `tree_attention(queries, keys, values, plan)`:

    o_r = softmax(q_r . K_r^T / sqrt(d)) V_r,   K_r = the keys of the committed tokens and of
                                                row r's ancestors, itself included

- `queries` float32 [rows, heads, d]; rows in the order of the tree.
- `keys`, `values` float32 [kv heads, capacity, d]: slots 0..length-1 hold the committed tokens,
  slots length..length+rows-1 the rows of the tree (`length` is the plan's). Capacity is a multiple of `CHUNK`, and every
  slot holds finite numbers. Both are unchanged on return.
- `plan` is the `TreePlan` of the tree, made once per step and shared by all layers.
- Returns float32 [rows, heads, d].

`canonical` gives a row the same bits whatever other rows ride along; `reference` is the formula.
"""

from kernels.tree_attention.canonical import tree_attention
from kernels.tree_attention.plan import CHUNK, TreePlan, TreeRun

__all__ = ["CHUNK", "TreePlan", "TreeRun", "tree_attention"]
