"""What happens to a row between two products: norms, 8-bit codes, rotary embedding, SwiGLU."""

import math

import numpy as np

from kernels.compiled import inner_njit
from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.tiles import GROUP

LEVELS = np.float32(host_unit().levels)
OFFSET = host_unit().offset
_ROUND = np.float32(12582912.0)  # 1.5 * 2^23: what is added to it loses its fraction
_LOG2_E, _LN2_HIGH, _LN2_LOW = (np.float32(x) for x in (1.44269504, 0.693359375, -2.12194440e-4))
# Cephes' expf: exp(r) = 1 + r + r^2 p(r) for |r| <= ln(2) / 2, to 2e-7
_P5, _P4, _P3, _P2, _P1, _P0 = (
    np.float32(x) for x in (1.9875691e-4, 1.3981999e-3, 8.3334519e-3, 4.1665796e-2, 0.16666665, 0.5)
)
_LOWEST, _HIGHEST = np.float32(-87.0), np.float32(88.0)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_TINY = np.float32(1e-30)  # what is smaller is nothing: its reciprocal may be infinite


@inner_njit(inline="always")
def exponential(x):
    """exp(x) for float32, to 2e-7; 0 from -87 down. Branchless, so that many are computed at once."""
    bounded = min(max(x, _LOWEST), _HIGHEST)
    power = (bounded * _LOG2_E + _ROUND) - _ROUND
    rest = bounded - power * _LN2_HIGH - power * _LN2_LOW
    poly = ((((_P5 * rest + _P4) * rest + _P3) * rest + _P2) * rest + _P1) * rest + _P0
    mantissa = poly * rest * rest + rest + _ONE
    scale = np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return mantissa * scale if x > _LOWEST else _ZERO


# Sums and largest values of a row may be found in any order, which is the same for each row.
@inner_njit(error_model="numpy", fastmath={"reassoc", "nsz", "nnan"})
def _mean_square(row):
    total = _ZERO
    for i in range(len(row)):
        total += row[i] * row[i]
    return total / np.float32(len(row))


@inner_njit(fastmath={"nsz", "nnan"})
def largest(values):
    """The largest of the values."""
    most = values[0]
    for i in range(len(values)):
        most = max(most, values[i])
    return most


@inner_njit(fastmath={"nsz", "nnan"})
def _magnitude(values):
    largest = _ZERO
    for i in range(len(values)):
        largest = max(largest, abs(values[i]))
    return largest


@inner_njit(error_model="numpy")
def quantize_group(values, codes, row, group, factor):
    """Write `values * factor`, the inputs of one group, as codes and a scale."""
    largest = _magnitude(values)
    to_code = LEVELS / largest if largest > _TINY else _ZERO
    total = np.int32(0)
    start = group * GROUP
    out = codes.values[row, start : start + len(values)]
    for i in range(len(values)):
        code = np.int32((values[i] * to_code + _ROUND) - _ROUND)
        out[i] = np.int8(code)
        total += code
    codes.starts[row, group] = -OFFSET * total
    codes.scales[row, group] = largest / LEVELS * factor


@inner_njit(error_model="numpy")
def quantize(values, codes, row, factor):
    """Write `values * factor`, float32 [inputs], as codes."""
    for group in range(codes.scales.shape[1]):
        quantize_group(values[group * GROUP : (group + 1) * GROUP], codes, row, group, factor)


@inner_njit(error_model="numpy")
def normalize(values, codes, row, epsilon):
    """RMSNorm, whose weight stands in the matrix behind it: a factor of all codes of the row."""
    quantize(values, codes, row, np.float32(1.0 / math.sqrt(_mean_square(values) + epsilon)))


@inner_njit(error_model="numpy")
def rotate(given, start, cosines, sines, factor, out, target):
    """Rotary embedding of the head at `start`, times `factor`, to `target` of `out`.

    The halves of a head form the pairs.
    """
    half = len(cosines)
    for i in range(half):
        first, second = given[start + i], given[start + half + i]
        out[target + i] = (first * cosines[i] - second * sines[i]) * factor
        out[target + half + i] = (second * cosines[i] + first * sines[i]) * factor


@inner_njit(error_model="numpy", fastmath={"contract"})
def gate(gates, ups, out):
    """SwiGLU: `silu(gates) * ups`. `out` is other memory: else nothing is computed side by side."""
    for i in range(len(out)):
        out[i] = gates[i] / (_ONE + exponential(-gates[i])) * ups[i]
