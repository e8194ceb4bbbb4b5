"""A matrix product for 1 to 128 rows, added to the residual stream, with what the next norm needs.

Contract, in every implementation of
`skinny_matmul(inputs, weight, residual, norm_weight, normed, squares, scratch)`:

    x = residual + inputs W^T              in place: `residual` float32 [R, N]
    normed_rn = x_rn norm_weight_n         `normed` [R, N] in the type of `inputs`
    squares_br = sum over n of x_rn^2      `squares` float32 [ceil(N / 64), R], n in the 64
                                           columns of block b

- `inputs` [R, K] bfloat16; `weight` a `Weight` of N outputs, K inputs; `norm_weight` float32 [N].
- Whoever reads `normed` divides by the root mean square, which is sqrt(sum of squares / N + eps):
  a row's factor is the same for all of its numbers, so it may come after the next product.
- `scratch` as `tiles.scratch_size` says, here and in the other products that take one.
- All tensors are contiguous, and 1 <= R <= 128, in all four products.

A row's bits depend on nothing but that row: tile depth, number of splits and the order of their sum
come from N and K alone.
"""
