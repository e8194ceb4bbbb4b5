"""Looks the rows' tokens up, and prepares the first norm.

Contract, in every implementation of `embed_rows(batch, table, norm_weight, stream)`:

    x_r = table[batch.tokens[r]]

- Writes x and what follows from it to `stream`, a `ResidualStream`.
- `table` [V, H] bfloat16 (or float32), `norm_weight` float32 [H]. Rows that hold nothing hold token 0.
"""
