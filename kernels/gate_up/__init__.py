"""Normalises, projects to gate and up, and joins them: SwiGLU.

Contract, in every implementation of `gate_up(normed, squares, weight, out, scratch, eps)`:

    y = (normed W^T) / sqrt(sum_b squares_b / H + eps)
    out_ri = silu(y_r,2i) y_r,2i+1,        silu(z) = z / (1 + exp(-z))

- `normed` [R, H], `squares` float32 [blocks, R]: see `skinny_matmul`.
- `weight` has 2 I outputs, of gate and up in turn. Writes `out` [R, I] in the type of `normed`.
"""
