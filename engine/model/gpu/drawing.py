"""What decides a row's noise: 64 bits of its seed and of the place that its token will have."""

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def noise_keys(seed: int, positions: np.ndarray) -> np.ndarray:
    """int32 [rows, 2] for int64 `positions` [rows]; the same wherever a row stands in a step."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        stream = _mix(np.array([seed % 2**64], np.uint64) + _GOLDEN)
        keys: np.ndarray = _mix(stream ^ positions.astype(np.uint64))
    return keys.view(np.int32).reshape(-1, 2)


def _mix(bits: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every bit of the result depends on every bit of `bits`."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    mixed: np.ndarray = bits ^ (bits >> np.uint64(31))
    return mixed
