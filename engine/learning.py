"""What the engine learns on one machine with one model, and keeps for its next start."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.decoding.acceptance import AcceptanceTable, AcceptanceTables
from engine.decoding.budget import ROW_COUNTS, SWEEP_ROUNDS, Budget, StepCost, sweep
from engine.decoding.pool.expansion import prior_acceptance
from engine.decoding.recycler import RECYCLER_PRIOR
from engine.decoding.window import WINDOW_PRIOR
from engine.model.causal_lm import MAX_ROWS, CausalModel, TokenTree
from engine.progress import Progress

_CONTEXT = 16  # tokens in the slot while steps are timed
_SWEEP_LIMIT = 4.0  # stop at the row count that costs this many one-row steps
_PROBED_ROWS = 8


@dataclass(frozen=True, slots=True)
class Learning:
    """The acceptance tables and the step costs, and the two files that keep them."""

    tables: AcceptanceTables
    budget: Budget
    tables_file: Path
    cost_file: Path

    @classmethod
    def load(cls, folder: Path, key: str, model: CausalModel, progress: Progress) -> "Learning":
        """Read what is known under `key`; what is missing or damaged starts afresh."""
        tables_file, cost_file = folder / f"{key}.npz", folder / f"{key}.json"
        tables = AcceptanceTables(
            {
                "pool": AcceptanceTable(prior_acceptance()),
                "window": AcceptanceTable(WINDOW_PRIOR),
                "recycler": AcceptanceTable(RECYCLER_PRIOR),
            }
        )
        tables.load(tables_file)
        timer = _StepTimer(model)
        known = _read_costs(cost_file)
        if known is not None and _still_holds(known, timer):
            return cls(tables, Budget(known), tables_file, cost_file)
        learning = cls(tables, Budget(StepCost(_sweep(timer, progress))), tables_file, cost_file)
        learning.save()
        return learning

    def save(self) -> None:
        """Write both files. A full or read-only disk loses what was learned, nothing else."""
        with suppress(OSError):
            self.tables.save(self.tables_file)
            costs = {str(rows): ms for rows, ms in self.budget.cost.as_mapping().items()}
            partial = self.cost_file.with_suffix(".partial")
            partial.write_text(json.dumps(costs), "utf-8")
            partial.replace(self.cost_file)


class _StepTimer:
    """Times steps of a model behind a short context."""

    def __init__(self, model: CausalModel) -> None:
        self._ids = [token % model.vocab_size for token in range(MAX_ROWS)]
        self._slot = model.new_slot(_CONTEXT + MAX_ROWS)
        self._slot.prefill(self._ids[:_CONTEXT])

    def ms(self, rows: int) -> float:
        """Duration of one step of `rows` rows."""
        began = time.perf_counter()
        self._slot.step(TokenTree.chain(self._ids[:rows]))
        return 1000 * (time.perf_counter() - began)


def _still_holds(cost: StepCost, timer: _StepTimer) -> bool:
    """Probe two row counts: a sweep taken on a busy machine misleads until it is taken again."""
    one, many = (min(timer.ms(rows) for _ in range(2)) for rows in (1, _PROBED_ROWS))
    return cost.agrees(_PROBED_ROWS, many, one)


def _sweep(timer: _StepTimer, progress: Progress) -> Mapping[int, float]:
    def timed(rows: int) -> float:
        progress.advance(1)
        return timer.ms(rows)

    progress.begin("timing this machine's decoding steps", SWEEP_ROUNDS * len(ROW_COUNTS))
    try:
        return sweep(timed, limit_factor=_SWEEP_LIMIT)
    finally:
        progress.end()


def _read_costs(path: Path) -> StepCost | None:
    try:
        costs = json.loads(path.read_text("utf-8"))
        return StepCost({int(rows): float(ms) for rows, ms in costs.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return None
