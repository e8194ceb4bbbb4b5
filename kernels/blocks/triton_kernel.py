"""Products with the blocks of model files in Triton. See the package for how they lie in memory.

Triton runs only those loads ahead that the tensor cores take: the words of scales are carried from
one iteration to the next by hand.
"""

import triton
import triton.language as tl


@triton.jit
def block_product(
    WEIGHT_ROWS, X, SCALES, output, there, first, end,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """acc = W x^T over the blocks first..end - 1 of DEPTH inputs, float32 [outputs, ROWS].

    WEIGHT_ROWS [outputs, 1] points to the codes of `output` [outputs], X [1, ROWS] to the inputs of
    rows, of which those `there` are read. DEPTH is 128, in q8_0 perhaps 64.
    """
    acc = tl.zeros([output.shape[0], ROWS], tl.float32)
    if QUANTIZATION == "q8_0":
        acc = _q8_0(acc, WEIGHT_ROWS, X, SCALES + output, there, first, end, N, K, DEPTH)
    elif QUANTIZATION == "q4_k":
        acc = _q4_k(acc, WEIGHT_ROWS, X, SCALES + output, there, first, end, N, K)
    elif QUANTIZATION == "int4_zeros":
        acc = _int4_zeros(acc, WEIGHT_ROWS, X, SCALES + output, there, first, end, N, K)
    else:
        HAS_MINIMA: tl.constexpr = QUANTIZATION == "q6_k_min"
        acc = _q6_k(acc, WEIGHT_ROWS, X, SCALES + output, there, first, end, N, K, HAS_MINIMA)
    return acc


@triton.jit
def _q8_0(
    acc, WEIGHT_ROWS, X, SCALES, there, first, end,
    N: tl.constexpr, K: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    PAIRS: tl.constexpr = DEPTH // 64  # of groups: their scales are one word
    j = tl.arange(0, 32)
    word_0 = tl.load(SCALES + first * PAIRS * N)
    word_1 = tl.load(SCALES + (first * PAIRS + PAIRS - 1) * N)
    for block in tl.range(first, end):
        following = tl.minimum(block + 1, K // DEPTH - 1) * PAIRS
        next_0 = tl.load(SCALES + following * N)
        next_1 = tl.load(SCALES + (following + PAIRS - 1) * N)
        for group in tl.static_range(DEPTH // 32):
            k = block * DEPTH + group * 32 + j
            codes = tl.load(WEIGHT_ROWS + k[None, :], eviction_policy="evict_first")
            inputs = tl.load(X + k[:, None], mask=there, other=0.0)
            part = tl.dot(codes.to(inputs.dtype), inputs, input_precision="ieee")
            acc += part * _float16(word_0 if group < 2 else word_1, group % 2)[:, None]
        word_0, word_1 = next_0, next_1
    return acc


@triton.jit
def _q4_k(
    acc, WEIGHT_ROWS, X, SCALES, there, first, end, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    j = tl.arange(0, 32)
    head, word_1, word_2, word_3 = _four_words(SCALES, first // 2, N)
    for block in tl.range(first, end):
        following = tl.minimum(block + 1, K // 128 - 1) // 2
        next_head, next_1, next_2, next_3 = _four_words(SCALES, following, N)
        scales, minima = _six_bits(word_1, word_2, word_3, block % 2 == 0)
        scale, subtracted = _float16(head, 0), _float16(head, 1)
        for pair in tl.static_range(2):
            at = block * 64 + pair * 32 + j
            codes = tl.load(WEIGHT_ROWS + at[None, :], eviction_policy="evict_first")
            nothing = (codes & 15) >> 4  # see `_minimum`
            for half in tl.static_range(2):
                k = block * 128 + pair * 64 + half * 32 + j
                inputs = tl.load(X + k[:, None], mask=there, other=0.0)
                held = _exact((codes >> (4 * half)) & 15, 0).to(inputs.dtype)
                part = tl.dot(held, inputs, input_precision="ieee")
                factor = scale * _unsigned(scales, pair * 2 + half).to(tl.float32)
                acc += part * factor[:, None]
                minimum = _minimum(minima, pair * 2 + half, nothing).to(inputs.dtype)
                part = tl.dot(minimum, inputs, input_precision="ieee")
                acc -= part * subtracted[:, None]
        head, word_1, word_2, word_3 = next_head, next_1, next_2, next_3
    return acc


@triton.jit
def _q6_k(
    acc, WEIGHT_ROWS, X, SCALES, there, first, end,
    N: tl.constexpr, K: tl.constexpr, HAS_MINIMA: tl.constexpr,
):  # fmt: skip
    j = tl.arange(0, 16)
    head, scales_0, scales_1, minima = _six_bit_words(SCALES, first, N, HAS_MINIMA)
    for block in tl.range(first, end):
        following = tl.minimum(block + 1, K // 128 - 1)
        next_head, next_0, next_1, next_minima = _six_bit_words(SCALES, following, N, HAS_MINIMA)
        scale, subtracted = _float16(head, 0), _float16(head, 1)
        for half in tl.static_range(2):  # of each 32 inputs
            at = block * 96 + half * 16 + j
            low_0 = tl.load(WEIGHT_ROWS + at[None, :], eviction_policy="evict_first")
            low_1 = tl.load(WEIGHT_ROWS + 32 + at[None, :], eviction_policy="evict_first")
            high = tl.load(WEIGHT_ROWS + 64 + at[None, :], eviction_policy="evict_first")
            for part in tl.static_range(4):
                low = (low_0 if part % 2 == 0 else low_1) >> (4 * (part // 2))
                codes = (low & 15) | (((high >> (2 * part)) & 3) << 4)
                k = block * 128 + part * 32 + half * 16 + j
                inputs = tl.load(X + k[:, None], mask=there, other=0.0)
                sums = tl.dot(_exact(codes, 32).to(inputs.dtype), inputs, input_precision="ieee")
                factor = _signed(scales_0 if part < 2 else scales_1, (part * 2 + half) % 4)
                acc += sums * (scale * factor.to(tl.float32))[:, None]
                if HAS_MINIMA:
                    minimum = _minimum(minima, part, (low & 15) >> 4).to(inputs.dtype)
                    sums = tl.dot(minimum, inputs, input_precision="ieee")
                    acc -= sums * subtracted[:, None]
        head, scales_0, scales_1, minima = next_head, next_0, next_1, next_minima
    return acc


@triton.jit
def _int4_zeros(
    acc, WEIGHT_ROWS, X, SCALES, there, first, end, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    j = tl.arange(0, 64)
    word = tl.load(SCALES + first * N)
    for block in tl.range(first, end):
        next_word = tl.load(SCALES + tl.minimum(block + 1, K // 128 - 1) * N)
        at = block * 64 + j
        codes = tl.load(WEIGHT_ROWS + at[None, :], eviction_policy="evict_first")
        zero = _exact(word >> 16, 0)[:, None]
        sums = tl.zeros_like(acc)
        for half in tl.static_range(2):
            k = block * 128 + half * 64 + j
            inputs = tl.load(X + k[:, None], mask=there, other=0.0)
            held = (_exact((codes >> (4 * half)) & 15, 0) - zero).to(inputs.dtype)
            sums = tl.dot(held, inputs, sums, input_precision="ieee")
        acc += sums * _float16(word, 0)[:, None]
        word = next_word
    return acc


@triton.jit
def block_row(VALUES, SCALES, output, k, N, K: tl.constexpr, QUANTIZATION: tl.constexpr):
    """The weights of one output for inputs k < K, in q8_0, q4_k, q6_k or q6_k_min: `reference`'s bits."""
    if QUANTIZATION == "q8_0":
        code = tl.load(VALUES + output * K + k).to(tl.float32)
        word = tl.load(SCALES + k // 64 * N + output)
        weight = code * _float16(word, k // 32 % 2)
    elif QUANTIZATION == "q4_k":
        at = VALUES + output * (K // 2) + k // 64 * 32 + k % 32
        code = (tl.load(at) >> (4 * (k // 32 % 2)).to(tl.uint8)) & 15
        head, first, second, third = _four_words(SCALES + output, k // 256, N)
        scales, minima = _six_bits(first, second, third, k // 128 % 2 == 0)
        scale = _unsigned(scales, k // 32 % 4).to(tl.float32) * _float16(head, 0)
        minimum = _unsigned(minima, k // 32 % 4).to(tl.float32) * _float16(head, 1)
        weight = code.to(tl.float32) * scale - minimum
    else:
        WORDS: tl.constexpr = 7 if QUANTIZATION == "q6_k_min" else 5
        at = VALUES + output * (K // 4 * 3) + k // 128 * 96
        low = tl.load(at + k % 64) >> (4 * (k // 64 % 2)).to(tl.uint8)
        high = tl.load(at + 64 + k % 32) >> (2 * (k // 32 % 4)).to(tl.uint8)
        code = ((low & 15) | ((high & 3) << 4)).to(tl.float32) - 32
        words = SCALES + k // 256 * WORDS * N + output
        head = tl.load(words)
        word = tl.load(words + (1 + k // 64 % 4) * N)
        weight = code * (_signed(word, k // 16 % 4).to(tl.float32) * _float16(head, 0))
        if QUANTIZATION == "q6_k_min":
            word = tl.load(words + (5 + k // 128 % 2) * N)
            weight -= _unsigned(word, k // 32 % 4).to(tl.float32) * _float16(head, 1)
    return weight


@triton.jit
def _six_bits(first, second, third, is_first):
    """Scales and minima of four of the 8 groups of q4_k, each a byte: see `reference.six_bits`."""
    low, high = third & 0x0F0F0F0F, (third >> 4) & 0x0F0F0F0F
    scales = tl.where(is_first, first & 0x3F3F3F3F, low | ((first >> 2) & 0x30303030))
    minima = tl.where(is_first, second & 0x3F3F3F3F, high | ((second >> 2) & 0x30303030))
    return scales, minima


@triton.jit
def _four_words(SCALES, block, N):
    at = SCALES + block * 4 * N
    return tl.load(at), tl.load(at + N), tl.load(at + 2 * N), tl.load(at + 3 * N)


@triton.jit
def _six_bit_words(SCALES, half, N: tl.constexpr, HAS_MINIMA: tl.constexpr):
    """Of 128 inputs: the float16, two words of scales, and one of minima or, without, the first."""
    at = SCALES + half // 2 * (7 if HAS_MINIMA else 5) * N
    head = tl.load(at)
    scales = at + (1 + half % 2 * 2) * N
    minima = head
    if HAS_MINIMA:
        minima = tl.load(at + (5 + half % 2) * N)
    return head, tl.load(scales), tl.load(scales + N), minima


@triton.jit
def _minimum(minima, index, nothing):
    """A group's minima as a factor of inputs, in the shape of `nothing`, zeros made of the codes.

    Made of bytes like the codes, it gets their layout in the matrix instruction, so that both
    products take the inputs in one layout. With two, Triton would not run their loads ahead.
    """
    return _exact(_unsigned(minima, index).to(tl.uint8)[:, None] | nothing, 0)


@triton.jit
def _exact(codes, ZERO: tl.constexpr):
    """code - ZERO in bfloat16, of codes 0 to 127: 0x4300 | code are the bits of 128 + code."""
    zero = tl.full(codes.shape, 0x4300 + ZERO, tl.uint16).to(tl.bfloat16, bitcast=True)
    return (codes.to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True) - zero


@triton.jit
def _float16(word, index):
    """One of the two float16 in an int32, as float32."""
    half = ((word >> (16 * index)) & 0xFFFF).to(tl.uint16)
    return half.to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _unsigned(word, index):
    return (word >> (8 * index)) & 255


@triton.jit
def _signed(word, index):
    return (word << (24 - 8 * index)) >> 24
