"""Calibrated acceptance: how often drafted nodes of a kind came true, one table per drafter.

A drafter sorts its nodes into cells; a node whose parent was accepted is a trial of its cell.
Evidence fades by 0.999 a step, so a table follows its user from one kind of text to the next; the
prior stays, with the weight of four trials.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.drafting.tree import Draft, Source
from kernels.compiled import njit

DECAY = 0.999
PRIOR_TRIALS = 4.0
DRAFTERS = {  # all other sources: the pool
    Source.WINDOW: "window",
    Source.RECYCLER: "recycler",
    Source.COPY: "copy",
    Source.LINE_START: "line",
}
_DRAFTER_NAMES = ("pool", *DRAFTERS.values())
_DRAFTER_OF = np.array([_DRAFTER_NAMES.index(DRAFTERS.get(one, "pool")) for one in Source])


class AcceptanceTable:
    """Accepted and tried counts of one drafter's cells."""

    def __init__(self, prior: np.ndarray) -> None:
        """Start without evidence. `prior` float64 [cells]: what to believe until some comes."""
        if prior.ndim != 1 or not np.all((prior > 0) & (prior < 1)):
            raise ValueError("a prior holds one probability between 0 and 1 per cell")
        self._prior = prior.astype(np.float64)
        self.counts = np.zeros((2, prior.size))  # hits and trials, fading
        self.probs = self._prior.copy()  # that a node is accepted, given that its parent is

    def update(self, cells: np.ndarray, accepted: np.ndarray) -> None:
        """Count one trial per cell, accepted or not (bool), after fading by one step."""
        _count(self.counts, self._prior, self.probs, cells.astype(np.int32, copy=False), accepted)

    def checked(self, counts: Sequence[Sequence[float]]) -> np.ndarray:
        """Saved counts as `restore` takes them. Raises ValueError when they are of no such table."""
        checked = np.array(counts, np.float64)
        if checked.shape != self.counts.shape:
            raise ValueError("these counts belong to a table of another shape")
        hits, trials = checked
        if not np.all((hits >= 0) & (hits <= trials) & np.isfinite(trials)):
            raise ValueError("these are no counts of hits and trials")
        return checked

    def restore(self, counts: np.ndarray) -> None:
        """Take counts that were saved."""
        self.counts = counts
        hits, trials = counts
        # In place: the pool's kernel holds this array.
        self.probs[:] = (hits + PRIOR_TRIALS * self._prior) / (trials + PRIOR_TRIALS)


@njit("void(float64[:, ::1], float64[::1], float64[::1], int32[::1], boolean[::1])", cache=True)
def _count(
    counts: np.ndarray,
    prior: np.ndarray,
    probs: np.ndarray,
    cells: np.ndarray,
    accepted: np.ndarray,
) -> None:
    """Fade `counts`, add a trial for each cell, and bring `probs` up to date."""
    counts *= DECAY
    for trial in range(len(cells)):
        counts[0, cells[trial]] += accepted[trial]
        counts[1, cells[trial]] += 1
    for cell in range(len(prior)):
        probs[cell] = (counts[0, cell] + PRIOR_TRIALS * prior[cell]) / (
            counts[1, cell] + PRIOR_TRIALS
        )


@njit("int64[::1](int32[::1], uint8[::1], boolean[::1], int64[::1])", cache=True)
def _tried(
    parents: np.ndarray, sources: np.ndarray, accepted: np.ndarray, drafter_of: np.ndarray
) -> np.ndarray:
    """The drafter of each node whose parent was accepted; -1 where it was not."""
    drafters = np.full(len(parents), -1)
    for node in range(len(parents)):
        if parents[node] < 0 or accepted[parents[node]]:
            drafters[node] = drafter_of[sources[node]]
    return drafters


class AcceptanceTables:
    """The tables of all drafters, learnt from every verified draft."""

    def __init__(self, tables: Mapping[str, AcceptanceTable]) -> None:
        """Hold `tables` by drafter: `pool` and those of `DRAFTERS`."""
        self._tables = dict(tables)

    def __getitem__(self, drafter: str) -> AcceptanceTable:
        return self._tables[drafter]

    def update(self, draft: Draft, accepted: np.ndarray) -> None:
        """Learn from a verified draft; `accepted` bool [nodes]."""
        if not len(accepted):
            return
        drafters = _tried(draft.parents, draft.sources, accepted, _DRAFTER_OF)
        for drafter in set(drafters.tolist()):
            if drafter >= 0:
                own = drafters == drafter
                self._tables[_DRAFTER_NAMES[drafter]].update(draft.cells[own], accepted[own])

    def counts(self) -> dict[str, list[list[float]]]:
        """What `restore` takes."""
        return {name: table.counts.tolist() for name, table in self._tables.items()}

    def restore(self, kept: Mapping[str, Sequence[Sequence[float]]]) -> None:
        """Take all of these counts, or none. Raises ValueError where one is wrong."""
        known = [table for name, table in self._tables.items() if name in kept]
        counts = [table.checked(kept[name]) for name, table in self._tables.items() if name in kept]
        for table, one in zip(known, counts, strict=True):
            table.restore(one)
