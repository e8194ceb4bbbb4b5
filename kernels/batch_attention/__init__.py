"""Attention of the rows of several token trees over a KV arena, one layer.

Contract, in every implementation of `batch_attention(queries, keys, values, batch, scratch, out)`:

    o_r = softmax(q_r . K_r^T / sqrt(d)) V_r,   K_r = the keys of the committed tokens of r's
                                                sequence and of r's ancestors, itself included

- `queries` [R, heads, d], the rotary embedding applied.
- `keys`, `values` [kv heads, positions, d] of the arena; see `BatchMetadata` for who stands where.
  What stands anywhere else may hold anything, NaN too, and is never used. Unchanged on return.
- `scratch` is working memory of at least `scratch_size` numbers and counters.
- Writes `out` [R, heads, d]; rows that hold nothing keep what they had.

`reference` is the formula. The Triton kernel gives a row the same bits whatever other rows ride
along, and whether a key of it is committed or in flight.
"""
