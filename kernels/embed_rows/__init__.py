"""Looks the rows' tokens up, and prepares the first norm.

Contract, in every implementation of `embed_rows(batch, table, norm_weight, residual, normed, squares)`:

    x_r = table[batch.tokens[r]]
    residual = x, normed = x norm_weight, squares_br = sum of x^2 over block b    as `skinny_matmul` has them

- `table` [V, H] bfloat16 (or float32), `norm_weight` float32 [H]. Rows that hold nothing hold token 0.
"""
