"""A matrix product for few rows, added to the residual stream, with what the next norm needs.

Contract, in every implementation of `skinny_matmul(inputs, weight, norm_weight, stream, scratch)`:

    x = residual + inputs W^T

- `inputs` [R, K] bfloat16; `weight` a `Weight` of N outputs, K inputs; `norm_weight` float32 [N].
- Writes x and what follows from it to `stream`, a `ResidualStream`: `residual` in place.
- `scratch` as `tiles.scratch_size` says, here and in the other products that take one.
- All tensors are contiguous, in all four products, and R >= 1. A program takes up to 128 rows.

A row's bits depend on nothing but that row: tile depth, number of splits and the order of their sum
come from N and K alone.
"""
