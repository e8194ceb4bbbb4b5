"""Normalises, projects to gate and up, and joins them: SwiGLU.

Contract, in every implementation of `gate_up(stream, weight, out, scratch)`:

    y = (normed W^T) / sqrt(sum_b squares_b / H + eps)
    out_ri = silu(y_r,2i) y_r,2i+1,        silu(z) = z / (1 + exp(-z))

- `stream` is a `ResidualStream` of R rows.
- `weight` has 2 I outputs, of gate and up in turn. Writes `out` [R, I] in the type of its `normed`.
"""
