"""Time the steps of a model that is loaded, by context and rows."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from engine.bench.report import figure_table
from engine.completer import EngineInfo
from engine.learning import StepTimer
from engine.model.causal_lm import CausalModel
from engine.model.token_tree import MAX_ROWS

CONTEXTS = (64, 960, 3840)  # tokens; the longest is that of a large prompt with other files
_ROWS = (1, 2, 4, 8, 16, 32, 64, MAX_ROWS)
_TRIES = 9  # timed steps for a median; an odd number has one in the middle


@dataclass(frozen=True, slots=True)
class StepMedian:
    """The median time of a step, in ms."""

    rows: int
    context: int
    ms: float


def measure_steps(model: CausalModel, contexts: Iterable[int]) -> Iterator[StepMedian]:
    """Time steps of growing row counts behind these contexts."""
    for context in contexts:
        timer = StepTimer(model, context)
        for rows in _ROWS:
            ms = statistics.median(timer.ms(rows) for _ in range(_TRIES))
            yield StepMedian(rows, timer.context, ms)


def steps_table(times: Sequence[StepMedian], engine: EngineInfo) -> Table:
    """Return a table with a row for each step."""
    where = f"{engine.model} {engine.dtype} on {engine.device}, {engine.threads} threads"
    columns = ["context", "rows"], ["step"]
    table = figure_table(*columns, title="a step's time", caption=f"{where}; ms, medians")
    for one in times:
        table.add_row(str(one.context), str(one.rows), f"{one.ms:.1f}")
    return table
