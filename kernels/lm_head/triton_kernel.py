"""The language-model head in Triton. See the package for the contract."""

import torch
import triton
import triton.language as tl

from kernels.lm_head import SUM_UNIT, Best, SamplingNoise
from kernels.product.triton_kernel import launch, product, row_factors, rows_of, scaled
from kernels.residual import ResidualStream
from kernels.weight import Weight

_SUM_UNIT: tl.constexpr = tl.constexpr(SUM_UNIT)


# Buckets share a binary: no number of rows may shape the code, and 1 would become a constant.
@triton.jit(do_not_specialize=["num_rows"])
def lm_head_kernel(
    INPUTS, VALUES, SCALES, SQUARES, LOGIT_SCALES, NOISE_SCALES, NOISE_KEYS,
    BEST_SCORES, BEST_IDS, BEST_LOGITS, MAXIMA, SUMS, LOGITS, eps, num_rows,
    SAMPLED: tl.constexpr, STORE_LOGITS: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    STEP: tl.constexpr, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """score = (x W^T) / sqrt(sum_b squares_b / K + eps) logit_scale + noise_scale Gumbel.

    INPUTS [R, K], SQUARES [blocks, R], LOGIT_SCALES and NOISE_SCALES [R], NOISE_KEYS [R, 2], LOGITS
    [R, N]; BEST_SCORES, BEST_IDS, BEST_LOGITS, MAXIMA and SUMS [N / 64, R]. No bit depends on the
    layout: the best are maxima and minima, and the sums are of whole numbers.
    """
    tile, row_block = tl.program_id(1), tl.program_id(0)
    acc = product(
        INPUTS, VALUES, SCALES, num_rows, tile, tl.program_id(2), row_block,
        N, K, QUANTIZATION, DEPTH, STEP, SPLITS, OUTPUTS, ROWS, STAGES, PDL,
    )  # fmt: skip
    n = tile * OUTPUTS + tl.arange(0, OUTPUTS)
    row = rows_of(row_block, ROWS)
    there = row < num_rows
    factors = row_factors(SQUARES, eps, num_rows, row_block, K, ROWS)
    logit = scaled(acc, SCALES, tile, N, QUANTIZATION, OUTPUTS) * factors[None, :]
    if STORE_LOGITS:
        inside = (n < N)[:, None] & there[None, :]
        tl.store(LOGITS + row[None, :].to(tl.int64) * N + n[:, None], logit, mask=inside)
    score = logit
    if SAMPLED:
        logit_scale = tl.load(LOGIT_SCALES + row, mask=there, other=0.0)
        noise_scale = tl.load(NOISE_SCALES + row, mask=there, other=0.0)
        key_0 = tl.load(NOISE_KEYS + row * 2, mask=there, other=0)
        key_1 = tl.load(NOISE_KEYS + row * 2 + 1, mask=there, other=0)
        score = logit * logit_scale[None, :] + noise_scale[None, :] * _gumbel(key_0, key_1, n)
    score = tl.where((n < N)[:, None], score, float("-inf"))
    logit = tl.where((n < N)[:, None], logit, float("-inf"))
    BLOCKS: tl.constexpr = OUTPUTS // 64
    # [BLOCKS, 64, ROWS]: of each block its own best.
    score = tl.reshape(score, [BLOCKS, 64, ROWS])
    logit = tl.reshape(logit, [BLOCKS, 64, ROWS])
    token = tl.reshape(n, [BLOCKS, 64])[:, :, None]
    best = tl.max(score, axis=1)
    best_id = tl.min(tl.where(score == best[:, None, :], token, 2147483647), axis=1)
    is_best = token == best_id[:, None, :]
    best_logit = tl.max(tl.where(is_best, logit, float("-inf")), axis=1)
    maximum = tl.max(logit, axis=1)
    largest = tl.where(maximum > float("-inf"), maximum, 0.0)  # a block may lie behind the last
    shares = tl.exp(logit - largest[:, None, :]) / _SUM_UNIT
    total = tl.sum((shares + 0.5).to(tl.int32), axis=1).to(tl.float32) * _SUM_UNIT
    block = (tile * BLOCKS + tl.arange(0, BLOCKS))[:, None]
    at = block * num_rows + row[None, :]
    inside = (block * 64 < N) & there[None, :]
    tl.store(BEST_SCORES + at, best, mask=inside)
    tl.store(BEST_IDS + at, best_id, mask=inside)
    tl.store(BEST_LOGITS + at, best_logit, mask=inside)
    tl.store(MAXIMA + at, maximum, mask=inside)
    tl.store(SUMS + at, total, mask=inside)


@triton.jit
def _gumbel(key_0, key_1, n):
    """Gumbel(key, id) of `SamplingNoise`, float32 [OUTPUTS, ROWS]."""
    h = n.to(tl.uint32)[:, None] * 0x9E3779B1 + key_0.to(tl.uint32, bitcast=True)[None, :]
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15) ^ key_1.to(tl.uint32, bitcast=True)[None, :]) * 0x846CA68B
    h = h ^ (h >> 16)
    t = ((h >> 9).to(tl.float32) + 0.5) * (1.0 / 8388608.0)
    return -tl.log(-tl.log(1.0 - t))


def lm_head(
    stream: ResidualStream,
    weight: Weight,
    noise: SamplingNoise | None,
    best: Best,
    logits: torch.Tensor | None,
    *,
    programmatic: bool = False,
) -> None:
    """score = (normed W^T) / sqrt(sum_b squares_b / H + eps) logit_scale + noise_scale Gumbel."""
    grid, given = launch(stream.normed, weight, None, programmatic=programmatic)
    lm_head_kernel[grid](
        SQUARES=stream.squares,
        LOGIT_SCALES=noise.logit_scales if noise else None,
        NOISE_SCALES=noise.noise_scales if noise else None,
        NOISE_KEYS=noise.keys if noise else None,
        BEST_SCORES=best.scores, BEST_IDS=best.ids, BEST_LOGITS=best.logits,
        MAXIMA=best.maxima, SUMS=best.sums, LOGITS=logits, eps=stream.eps,
        SAMPLED=noise is not None, STORE_LOGITS=logits is not None, **given,
    )  # fmt: skip
