"""Verification: the longest path of a token tree that the model itself would have written."""

import numpy as np

from kernels.compiled import njit


def verify(token_ids: np.ndarray, parents: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Walk from row 0 to the child that equals the row's own choice, as far as there is one.

    `token_ids` and `chosen` int64 [rows], `parents` int32 [rows]: `chosen` is what the model draws
    after each row exactly as plain decoding would, so the walk writes plain decoding's text.
    Returns the rows that agree, int64 [accepted + 1], row 0 first. What they chose is one token
    more than was drafted: the last one, the bonus token, has no keys and values yet.
    """
    path: np.ndarray = _verify(token_ids, parents, chosen)
    return path


@njit("int64[::1](int64[::1], int32[::1], int64[::1])", cache=True)
def _verify(token_ids: np.ndarray, parents: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    path, depth = np.zeros(len(token_ids), np.int64), 0
    # Parents come before children, so one pass meets the path in its order.
    for row in range(1, len(token_ids)):
        if parents[row] == path[depth] and token_ids[row] == chosen[path[depth]]:
            depth += 1
            path[depth] = row
    return path[: depth + 1]
