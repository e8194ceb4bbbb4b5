"""Lengths of the common start and the common end of two texts or lists."""

from collections.abc import Sequence


def common_start(one: Sequence[object], other: Sequence[object]) -> int:
    """Count the equal items at the start, by bisection, as comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(one: Sequence[object], other: Sequence[object]) -> int:
    """Count the equal items at the end."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        part = one[len(one) - middle : len(one) - low]
        if part == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
