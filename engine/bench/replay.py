"""Replay real insertions and edits through the engine, each with lookahead off and on."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from rich.console import Group

from engine.bench.figures import speed_figures
from engine.bench.measured import Measured, measure, request_for
from engine.bench.report import Setting, defects, drafting_table, item_json, plain, speed_table
from engine.bench.task_sets import ReplayItem
from engine.engine import Engine
from engine.request import CompletionRequest

Runs = Mapping[str, list[Measured]]  # items by kind: completions, edits


def run_replay(engine: Engine, items: Iterable[ReplayItem], decoding: CompletionRequest) -> Runs:
    """Measure every item, off and on in alternating order."""
    runs: dict[str, list[Measured]] = {}
    for item, run in measure(engine, items, partial(request_for, decoding=decoding)):
        runs.setdefault(item.kind, []).append(run)
    return runs


def replay_json(runs: Runs, setting: Setting) -> dict[str, Any]:
    """Return figures by set, and each item's result. Times in ms; NaN becomes null."""
    every = [run for some in runs.values() for run in some]
    return setting.as_json() | {
        "sets": {kind: plain(speed_figures(some)) for kind, some in runs.items()},
        "different": [run.id for run in every if not run.is_identical],
        "items": [plain(item_json(run)) for run in every],
    }


def replay_tables(runs: Runs, setting: Setting) -> Group:
    """Return two tables for each set: speeds, and drafting."""
    tables = []
    for kind, some in runs.items():
        figures = speed_figures(some)
        tables += [speed_table(f"{kind}, {figures.items} items", figures), drafting_table(figures)]
    every = [run for some in runs.values() for run in some]
    return Group(*tables, setting.line, *defects(every))
