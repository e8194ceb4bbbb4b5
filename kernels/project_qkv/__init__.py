"""Normalises, projects to queries, keys and values, rotates, and writes keys and values.

Contract, in every implementation of
`project_qkv(stream, weight, bias, cos_sin, batch, queries, keys, values, scratch)`:

    y = (normed W^T) / sqrt(sum_b squares_b / H + eps) + bias
    y = (q of all heads, k of all kv heads, v of all kv heads), d numbers each
    in each head of q and k, the pair (2i, 2i+1) is rotated by the angle of (place, i):
        (a cos - b sin, b cos + a sin)

- `stream` is a `ResidualStream` of R rows. `bias` float32 [N].
- `cos_sin` float32 [places, d], of each place in the text the cosines of i = 0..d/2-1, then the
  sines. A row's place is the length of its sequence plus its depth.
- Writes `queries` [R, heads, d], and for rows that hold a token the keys and values
  [kv heads, positions, d] at the row's arena position (see `BatchMetadata`).
- The pairs stand beside each other because the rows of `weight` were reordered so, in queries and
  keys alike, which no product of the two can see.
"""
