"""What the engine learns on one machine with one model, and keeps for its next start."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.decoding.acceptance import AcceptanceTable, AcceptanceTables
from engine.decoding.budget import ROW_COUNTS, SWEEP_REPEATS, Budget, StepCost, sweep
from engine.decoding.pool.expansion import prior_acceptance
from engine.decoding.recycler import RECYCLER_PRIOR
from engine.decoding.window import WINDOW_PRIOR
from engine.model.causal_lm import MAX_ROWS, CausalModel, TokenTree
from engine.progress import Progress

_SWEEP_CONTEXT = 512  # tokens in the slot while steps are timed
_SWEEP_LIMIT = 8.0  # stop at the row count that costs this many one-row steps


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
        known = _read_costs(cost_file)
        cost = StepCost(known or sweep_model(model, progress))
        learning = cls(tables, Budget(cost), tables_file, cost_file)
        if known is None:
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


def sweep_model(model: CausalModel, progress: Progress) -> Mapping[int, float]:
    """Time steps of growing row counts behind 512 tokens of context, in ms."""
    context = min(_SWEEP_CONTEXT, model.max_context // 2)
    slot = model.new_slot(context + MAX_ROWS)
    slot.prefill([token % model.vocab_size for token in range(context)])

    def step(rows: int) -> float:
        began = time.perf_counter()
        slot.step(TokenTree.chain([token % model.vocab_size for token in range(rows)]))
        progress.advance(1)
        return 1000 * (time.perf_counter() - began)

    progress.begin("timing this machine's decoding steps", SWEEP_REPEATS * len(ROW_COUNTS))
    try:
        return sweep(step, limit_factor=_SWEEP_LIMIT)
    finally:
        progress.end()


def _read_costs(path: Path) -> dict[int, float] | None:
    try:
        costs = {int(rows): float(ms) for rows, ms in json.loads(path.read_text("utf-8")).items()}
        StepCost(costs)
    except (OSError, ValueError, AttributeError, TypeError):
        return None
    return costs
