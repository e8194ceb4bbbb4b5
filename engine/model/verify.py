"""Verification: the longest path of a token tree that the model itself would have written."""

from typing import NamedTuple

import numpy as np


class Verdict(NamedTuple):
    """The rows that agree, row 0 first, and what the model wrote: one token more than was drafted.

    `rows` int64 [accepted + 1] and `token_ids` int64 [accepted + 1]: the token that each row of
    the path chose. The last one, the bonus token, has no keys and values yet.
    """

    rows: np.ndarray
    token_ids: np.ndarray

    @property
    def num_accepted(self) -> int:
        """Drafted tokens that the model agreed to."""
        return len(self.rows) - 1


def verify(token_ids: np.ndarray, parents: np.ndarray, chosen: np.ndarray) -> Verdict:
    """Walk from row 0 to the child that equals the row's own choice, as far as there is one.

    `token_ids` and `chosen` int64 [rows], `parents` int32 [rows]: `chosen` is what the model draws
    after each row exactly as plain decoding would, so the walk writes plain decoding's text.
    """
    rows = [0]
    for row in range(1, len(token_ids)):
        # Parents come before children, so one pass meets the path in its order.
        if parents[row] == rows[-1] and token_ids[row] == chosen[rows[-1]]:
            rows.append(row)
    path = np.array(rows, np.int64)
    return Verdict(path, chosen[path])
