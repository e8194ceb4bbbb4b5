"""How many drafted rows a step can afford: calibrated probabilities against measured costs."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernels.compiled import njit

_MOST_ROWS = 128
_CLIP = 1.5  # a step that took longer than this times its estimate was disturbed
_LEARNING_RATE = 0.05
_RATE_MEMORY = 0.98
_MOST_DRAFTING = 16  # sequences of a step that draft at all


class StepCost:
    """What steps of 1 to 128 rows cost here: by a sweep at first, then as real steps take."""

    def __init__(self, swept: Mapping[int, float], buckets: Sequence[int] = ()) -> None:
        """`swept` maps row counts to ms. Raises ValueError unless it covers one row.

        `buckets` are the `row_buckets` of a model.
        """
        if 1 not in swept or min(swept.values()) <= 0:
            raise ValueError("a sweep of step costs covers one row and takes time")
        counts = sorted(swept)
        # A wider step is never cheaper than a narrower one: what looks so is noise.
        costs = np.maximum.accumulate([swept[count] for count in counts])
        rows = np.arange(1, _MOST_ROWS + 1)
        self._ms = np.interp(rows, counts, costs)
        if len(counts) > 1:  # beyond the sweep a row costs what the last ones did
            slope = (costs[-1] - costs[-2]) / (counts[-1] - counts[-2])
            self._ms += slope * np.maximum(rows - counts[-1], 0)
        # Of each count the place of the one that it is padded to.
        padded = np.searchsorted(buckets, rows) if len(buckets) else rows - 1
        self._padded = np.asarray(buckets)[padded] - 1 if len(buckets) else padded
        self._ms = self._ms[self._padded]

    @property
    def relative(self) -> np.ndarray:
        """float64 [128]: cost of 1 to 128 rows in steps of one row."""
        relative: np.ndarray = self._ms / self._ms[0]
        return relative

    def ms(self, rows: int) -> float:
        """Estimated duration of a step of `rows` rows."""
        return float(self._ms[rows - 1])

    def observe(self, rows: int, ms: float) -> None:
        """Learn from a step. Outliers count for no more than 1.5 times the estimate."""
        _follow(self._ms, self._padded, int(self._padded[rows - 1]) + 1, ms)


@njit("void(float64[::1], int64[::1], int64, float64)", cache=True)
def _follow(costs: np.ndarray, padded: np.ndarray, rows: int, ms: float) -> None:
    """Move `costs` float64 [128] towards what a step of `rows` rows took, most of all near it."""
    estimate = costs[rows - 1]
    error = min(max(ms, estimate / _CLIP), estimate * _CLIP) / estimate - 1
    for place in range(len(costs)):
        distance = np.log2((place + 1) / rows)
        costs[place] *= 1 + _LEARNING_RATE * error * np.exp(-4 * distance**2)
    for place in range(rows - 2, -1, -1):  # no fewer rows cost more
        costs[place] = min(costs[place], costs[place + 1])
    for place in range(rows, len(costs)):  # and no more rows less
        costs[place] = max(costs[place], costs[place - 1])
    costs[:] = costs[padded]


class Budget:
    """Chooses the drafted nodes of each step so that none costs more than it should win.

    `num_sequences` share each step: a sequence then pays its part of what all rows cost.
    """

    def __init__(self, cost: StepCost, most_rows: int = _MOST_ROWS) -> None:
        """`most_rows` is what a step may have, those of all sequences together."""
        self.cost = cost
        self.most_rows = most_rows
        self.num_sequences = 1
        self._tokens = self._spent = 1.0  # one token for one step: plain decoding

    def share_among(self, num_sequences: int) -> None:
        """So many sequences share each step from now on."""
        self.num_sequences = num_sequences

    @property
    def rate(self) -> float:
        """Running mean of tokens won per cost of a one-row step."""
        return self._tokens / self._spent

    @property
    def most_nodes(self) -> int:
        """Drafted nodes that a sequence may have in a step, whatever they should win.

        Whole trees for up to four sequences, short chains for up to sixteen, plain decoding beyond:
        together they stay within what a GPU verifies at nearly the cost of one row.
        """
        num_rows = self.most_rows // self.num_sequences
        return max(0, num_rows - 1) if self.num_sequences <= _MOST_DRAFTING else 0

    def affordable(self, probs: np.ndarray) -> int:
        """Return how many of the best-first nodes to verify; 0 is plain decoding.

        Maximises 1 + sum(probs[:n]) - rate * cost(n + 1): what n nodes should win, less what the
        time of the step wins elsewhere.
        """
        probs, costs = probs[: self.most_nodes], self.cost.relative
        count: int = _affordable(probs, costs, self.rate, self.num_sequences)
        return count

    def observe(self, step_rows: int, tokens: int) -> None:
        """Count what a sequence won in a step of `step_rows` rows, those of others included."""
        cost = float(self.cost.relative[step_rows - 1]) / self.num_sequences
        self._tokens = _RATE_MEMORY * self._tokens + tokens
        self._spent = _RATE_MEMORY * self._spent + cost


@njit("int64(float64[::1], float64[::1], float64, int64)", cache=True)
def _affordable(probs: np.ndarray, costs: np.ndarray, rate: float, num_sequences: int) -> int:
    """Return how many of the nodes to take; `costs` float64 [128] by rows, of all sequences."""
    best, best_gain, won = 0, -np.inf, 0.0
    for nodes in range(len(probs) + 1):
        won += probs[nodes - 1] if nodes > 0 else 0.0
        rows = min(num_sequences * (nodes + 1), len(costs))
        gain = won - rate * costs[rows - 1] / num_sequences
        if gain > best_gain:
            best, best_gain = nodes, gain
    return best
