"""The Jacobi window of lookahead decoding: guesses for the next positions, refined at each step.

Columns stand at positions 0, 1, ... behind the current token. Their first tokens form the spine,
which begins with the current token. A column then holds up to N-2 guesses, each chosen by the model
after the ones before. Column j's path is the spine up to j, then its guesses, so the window is a
token tree (Fu et al. 2024, arXiv 2402.02057). A step appends the model's choice to every column. A
column of N tokens is an n-gram for the pool, and drops its first token. All columns move back by
the number of tokens written. We keep W columns that can fill up before they reach the current
token, and the columns in front of these as their spine.
"""

from collections.abc import Sequence

import numpy as np

from engine.drafting.tree import EMPTY_DRAFT, Draft, DraftTree, Source

_COLUMNS = 8  # columns with rates of their own, as many as h100-7b has; others share the last
_LEVELS = 8  # the same of guesses in a column; half of the presets have N = 8
# Before any evidence: guesses of column 0 have seen the true text, all others a guessed spine.
WINDOW_PRIOR = np.repeat([0.3, *[0.05] * (_COLUMNS - 1)], _LEVELS)


class JacobiWindow:
    """The window of one completion. It depends on its arguments alone, so runs repeat."""

    def __init__(
        self,
        window_size: int,
        ngram_size: int,
        context: Sequence[int],  # not empty; its tokens are the first guesses
        probs: np.ndarray = WINDOW_PRIOR,  # float64 [cells] of the table, read at every draft
    ) -> None:
        self._window_size = window_size
        self._max_len = ngram_size - 1
        self._probs = probs
        self._starts = [int(token) for token in context]
        self._num_started = 0
        self._columns = self._filled({0: [self._starts[-1]]})

    def draft(self, nodes: int) -> Draft:
        """The window as a tree below the current token, at most `nodes` of it, best first."""
        columns = self._columns if self._max_len else []
        shares = self._probs.tolist()
        rows: list[tuple[int, int, float, int]] = []  # token, parent, probability, cell

        def grow(token: int, below: int, cell: int) -> int:
            prob = shares[cell] * (rows[below][2] if below >= 0 else 1.0)
            rows.append((token, below, prob, cell))
            return len(rows) - 1

        spine = -1
        for position, (first, *guesses) in enumerate(columns):
            if position:
                spine = grow(first, spine, _cell(position, 0))
            below = spine
            for level, guess in enumerate(guesses, 1):
                below = grow(guess, below, _cell(position, level))
        return _merged(rows, nodes)

    def update(self, draft: Draft, chosen: np.ndarray, num_accepted: int) -> list[np.ndarray]:
        """Take the model's choices, move on, and return the n-grams found, int32 [N] each.

        `chosen` int64 [nodes + 1]: choices behind the root and each node of the verified `draft`.
        """
        if not self._max_len:
            return []
        choices = _choices(draft, chosen)
        written: list[int] = []
        while len(written) <= num_accepted:
            written.append(choices[*written])
        moved: dict[int, list[int]] = {}
        grams = []
        spine: list[int] = []
        for position, column in enumerate(self._columns):
            spine += column[:1] if position else []
            choice = choices.get((*spine, *column[1:]))
            grown = column if choice is None else [*column, choice]
            if len(grown) > self._max_len:
                grams.append(np.array(grown, np.int32))
            kept = grown[-self._capacity(position, column) :]
            place = position + len(grown) - len(kept) - len(written)
            if place >= 0 and len(kept) > len(moved.get(place, [])):
                moved[place] = kept
        moved[0] = [written[-1], *moved.get(0, [])[1:]]
        self._columns = self._filled(moved)
        return grams

    def _capacity(self, position: int, column: list[int]) -> int:
        """Tokens that a column may hold: only its spine token if it cannot fill up in time."""
        return self._max_len if position + len(column) >= self._max_len else 1

    def _filled(self, columns: dict[int, list[int]]) -> list[list[int]]:
        """Columns at 0, 1, ... up to the W-th that can fill up in time, new ones in the gaps."""
        filled: list[list[int]] = []
        num_useful = 0
        while num_useful < self._window_size:
            position = len(filled)
            filled.append(columns.get(position) or [self._start()])
            num_useful += position + len(filled[-1]) >= self._max_len
        return filled

    def _start(self) -> int:
        # Steps of an odd prime visit the context's tokens without runs.
        self._num_started += 1
        return self._starts[self._num_started * 7919 % len(self._starts)]


def _choices(draft: Draft, chosen: np.ndarray) -> dict[tuple[int, ...], int]:
    """The model's choice behind each path of a verified tree, tokens from the root on."""
    paths: list[tuple[int, ...]] = [()]
    for token, parent in zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True):
        paths.append((*paths[parent + 1], token))
    return dict(zip(paths, chosen.tolist(), strict=True))


def _merged(rows: Sequence[tuple[int, int, float, int]], nodes: int) -> Draft:
    """The window's best nodes, with equal children of one parent merged."""
    if not rows:
        return EMPTY_DRAFT
    tokens, parents, probs, cells = zip(*rows, strict=True)
    tree = DraftTree(len(rows))
    tree.add(
        Draft(
            np.array(tokens, np.int32),
            np.array(parents, np.int32),
            np.array(probs, np.float64),
            np.full(len(rows), Source.WINDOW, np.uint8),
            np.array(cells, np.int32),
        )
    )
    return tree.best(nodes)


def _cell(position: int, level: int) -> int:
    return min(position, _COLUMNS - 1) * _LEVELS + min(level, _LEVELS - 1)
