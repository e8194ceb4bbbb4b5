"""Keeps the accepted rows of the last step, in all layers at once.

Contract, in every implementation of `kv_commit(keys, values, batch)`:

- `keys`, `values` [layers, kv heads, positions, d].
- For each sequence s with base b and length l = `batch.commit_lengths[s]`, and for each
  i < `batch.commit_counts[s]`: position b + l + i takes what stands at
  b + l + `batch.commit_rows[s, i]`. Rows ascend, so commit_rows[s, i] >= i.
- All other positions stay as they are.
"""
