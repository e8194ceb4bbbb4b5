"""Replays real insertions and edits through the engine, lookahead off and on item by item."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Group

from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.measured import Bench, Measured
from engine.bench.report import (
    Setting,
    defects,
    drafting_table,
    item_json,
    plain,
    speed_table,
)
from engine.bench.requests import request_for
from engine.bench.task_sets import ReplayItem
from engine.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What became of every item, by kind: completions, edits."""

    runs: dict[str, list[Measured]]
    inexact: Sequence[str] | None = None  # items that were to write their target, and did not

    @property
    def sets(self) -> dict[str, SpeedFigures]:
        """Figures by kind."""
        return {kind: speed_figures(runs) for kind, runs in self.runs.items()}

    @property
    def different(self) -> list[str]:
        """Items whose text changed with lookahead: each is a defect."""
        return [run.id for runs in self.runs.values() for run in runs if not run.is_identical]


def run_replay(
    bench: Bench, items: Iterable[ReplayItem], decoding: CompletionRequest
) -> ReplayReport:
    """Measure every item, off and on in alternating order."""
    ask = partial(request_for, decoding=decoding)
    runs: dict[str, list[Measured]] = {}
    for item, run in bench.measure(items, ask, lambda item: item.package):
        runs.setdefault(item.kind, []).append(run)
    return ReplayReport(runs)


def replay_json(report: ReplayReport, setting: Setting) -> dict[str, Any]:
    """Figures by set, and what became of each item. Times in ms; what is not a number is null."""
    items = [item_json(run) for runs in report.runs.values() for run in runs]
    return setting.as_json() | {
        "sets": plain(report.sets),
        "different": report.different,
        "items": plain(items),
        **({} if report.inexact is None else {"inexact": report.inexact}),
    }


def replay_tables(report: ReplayReport, setting: Setting) -> Group:
    """Two tables for each set: who decoded how fast, and what drafting did."""
    parts = [
        table
        for kind, figures in report.sets.items()
        for table in (
            speed_table(f"{kind}, {figures.items} items", figures),
            drafting_table(figures),
        )
    ]
    inexact = [f"not the target's text: {name}" for name in report.inexact or ()]
    return Group(*parts, setting.line, *defects(report.different), *inexact)
