"""What the engine learns on one machine with one model, and keeps for its next start."""

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from engine.atomic_write import atomic_write, read_kept
from engine.drafting.acceptance import AcceptanceTable, AcceptanceTables
from engine.drafting.budget import Budget, StepCost
from engine.drafting.pool.expansion import prior_acceptance
from engine.drafting.recycler import RECYCLER_PRIOR
from engine.drafting.window import WINDOW_PRIOR
from engine.model.causal_lm import CausalModel, StepInput, prefill, run_step
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.progress import Progress, shown

_ROW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_SWEEP_ROUNDS = 3
_SWEPT_CONTEXT = 512  # tokens behind which steps are timed; prompts hold up to 1024
_SWEPT_BRANCH = 4  # rows of a branch: real drafts have about four
_SWEEP_LIMIT = 4.0  # stop at the row count that costs this many one-row steps
_PROBED_CONTEXT = 16  # a start has no time to fill more
_FASTER = 1.5  # a step that is so many times as fast as it was shows that the machine was busy then

_Milliseconds = Annotated[float, Meta(gt=0, le=1e9)]  # a step takes time, and not for ever
_Rows = Annotated[int, Meta(ge=1, le=4096)]


class _Kept(msgspec.Struct):
    costs: dict[_Rows, _Milliseconds]  # as swept
    tables: dict[str, list[list[float]]] = {}

    def __post_init__(self) -> None:
        StepCost(self.costs)  # checks them


@dataclass(frozen=True, slots=True)
class Learning:
    """The acceptance tables, the step costs, and the file that keeps them."""

    tables: AcceptanceTables
    budget: Budget
    file: Path
    _costs: dict[int, float]

    @classmethod
    def load(cls, folder: Path, key: str, model: CausalModel, progress: Progress) -> "Learning":
        """Read what is known under `key`; what is missing or damaged starts afresh."""
        file = folder / f"{key}.json"
        tables = AcceptanceTables(
            {
                "pool": AcceptanceTable(prior_acceptance()),
                "window": AcceptanceTable(WINDOW_PRIOR),
                "recycler": AcceptanceTable(RECYCLER_PRIOR),
            }
        )
        kept = read_kept(file, _Kept)
        if kept is not None:
            with suppress(LookupError, ValueError):
                tables.restore(kept.tables)
        is_known = kept is not None and not _is_outdated(kept.costs, model)
        costs = kept.costs if kept and is_known else _sweep(model, progress)
        budget = Budget(StepCost(costs, model.row_buckets), model.most_rows)
        learning = cls(tables, budget, file, costs)
        if not is_known:
            learning.save()
        return learning

    def save(self) -> None:
        """Write the file. A full or read-only disk loses what was learned, nothing else."""
        with suppress(OSError), atomic_write(self.file) as file:
            file.write(msgspec.json.encode(_Kept(self._costs, self.tables.counts())))


def _is_outdated(costs: dict[int, float], model: CausalModel) -> bool:
    """Whether other work slowed the sweep. Noise only ever adds, so one look is enough."""
    timer = _StepTimer(model, _PROBED_CONTEXT)
    return _FASTER * min(timer.ms(1) for _ in range(2)) < costs[1]


class _StepTimer:
    def __init__(self, model: CausalModel, context: int) -> None:
        context = min(context, model.max_context - MAX_ROWS)
        self._ids = np.arange(context + MAX_ROWS) % model.vocab_size
        self._model, self._slot = model, model.new_slot(context + MAX_ROWS)
        prefill(model, self._slot, self._ids[:context].tolist())

    def ms(self, rows: int) -> float:
        """Duration of one step of `rows` rows, in branches as drafts have them."""
        parents = np.arange(-1, rows - 1, dtype=np.int32)
        parents[_SWEPT_BRANCH::_SWEPT_BRANCH] = 0
        step = StepInput(self._slot, TokenTree(self._ids[:rows], parents))
        return run_step(self._model, step).ms


def _sweep(model: CausalModel, progress: Progress) -> dict[int, float]:
    """Time steps of growing row counts. The fastest of several rounds counts: noise only adds."""
    counts = sorted({1, *model.row_buckets}) if model.row_buckets else _ROW_COUNTS
    costs: dict[int, float] = {}
    with shown(progress, "timing this machine's decoding steps", _SWEEP_ROUNDS * len(counts)):
        timer = _StepTimer(model, _SWEPT_CONTEXT)
        for _ in range(_SWEEP_ROUNDS):
            for rows in counts:
                progress.advance(1)
                costs[rows] = min(timer.ms(rows), costs.get(rows, math.inf))
                if costs[rows] > _SWEEP_LIMIT * costs[1]:
                    break
    return costs
