"""Looks the rows' tokens up, and prepares the first norm.

Contract, in every implementation of `embed_rows(tokens, table, norm_weight, stream)`:

    x_r = table[tokens[r]]

- Writes x and what follows from it to `stream`, a `ResidualStream`.
- `tokens` int32 [R]. `table` is a `Weight` of V outputs and H inputs, `float` or in the blocks of a
  model file of 4, 6 or 8 bits; `norm_weight` float32 [H]. Rows that hold nothing hold any
  token.
"""
