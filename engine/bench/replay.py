"""Replays real insertions and edits through the engine, lookahead off and on item by item."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group

from engine.bench.decoding_options import DecodingOptions
from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.measured import WARM_UP, Bench, Measured, OnProgress
from engine.bench.report import (
    Setting,
    defects,
    drafting_table,
    item_json,
    plain,
    speed_table,
)
from engine.bench.task_sets import ReplayItem


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What became of every item, by kind: completions, edits."""

    runs: dict[str, list[Measured]]

    @property
    def sets(self) -> dict[str, SpeedFigures]:
        """Figures by kind."""
        return {kind: speed_figures(runs) for kind, runs in self.runs.items()}

    @property
    def different(self) -> list[str]:
        """Items whose text changed with lookahead: each is a defect."""
        return [run.id for runs in self.runs.values() for run in runs if not run.is_identical]


def run_replay(
    bench: Bench, items: Sequence[ReplayItem], options: DecodingOptions, on_progress: OnProgress
) -> ReplayReport:
    """Measure every item, off and on in alternating order."""
    bench.engine.complete(WARM_UP)
    runs: dict[str, list[Measured]] = {}
    for number, item in enumerate(items):
        run = bench.measure(item.id, item.package, options.request(item), off_first=number % 2 == 0)
        runs.setdefault(item.kind, []).append(run)
        on_progress(number + 1, len(items))
    return ReplayReport(runs)


def replay_json(report: ReplayReport, setting: Setting) -> dict[str, Any]:
    """Figures by set, and what became of each item. Times in ms; what is not a number is null."""
    items = [item_json(run) for runs in report.runs.values() for run in runs]
    return setting.as_json() | {
        "sets": plain(report.sets),
        "different": report.different,
        "items": plain(items),
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
    return Group(*parts, setting.line, *defects(report.different))
