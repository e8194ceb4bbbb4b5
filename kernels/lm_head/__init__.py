"""The language-model head: of each block of the vocabulary, the best two of each row.

Contract, in every implementation of `lm_head(normed, squares, weight, noise, best, eps, logits)`:

    logit_rv = (normed_r W_v) / sqrt(sum_b squares_br / H + eps)
    score_rv = logit_rv * logit_scale_r + noise_scale_r Gumbel(key_r, v)

- `normed` [R, H], `squares` float32 [blocks, R]: see `skinny_matmul`. `weight` has V outputs.
- `noise` is a `SamplingNoise`, or None where all rows are greedy: then score = logit.
- Writes `best`, a `Best`: of each block of 64 tokens the best score, its id and the next score.
- Writes `logits` float32 [R, V] where it is not None.
"""
