"""Scores fill-in-the-middle tasks, and measures their decoding on the way."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.console import Group
from rich.table import Table

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
from engine.bench.scoring import Score, score
from engine.bench.task_sets import FimTask, grouped
from engine.model_names import printable
from engine.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class FimRun:
    """What became of one task."""

    task: FimTask
    measured: Measured
    score: Score


@dataclass(frozen=True, slots=True)
class FimFigures:
    """Shares of tasks, 0 to 1. `pass_at_1` is None where no task can be run."""

    tasks: int
    exact_match: float
    edit_similarity: float
    pass_at_1: float | None
    speed: SpeedFigures


def run_fim(bench: Bench, tasks: Iterable[FimTask], decoding: CompletionRequest) -> list[FimRun]:
    """Complete and score every task; the score is that of the text with lookahead."""
    ask = partial(request_for, decoding=decoding)
    return [
        FimRun(task, measured, score(task, measured.on.text))
        for task, measured in bench.measure(tasks, ask, lambda task: task.language)
    ]


def fim_figures(runs: Iterable[FimRun]) -> dict[str, FimFigures]:
    """Figures by language."""
    languages = grouped(runs, lambda run: run.task.language)
    return {language: _figures(members) for language, members in languages.items()}


def _figures(runs: Sequence[FimRun]) -> FimFigures:
    """Average at least one run."""
    scores = [run.score for run in runs]
    judged = [one.passed for one in scores if one.passed is not None]
    return FimFigures(
        tasks=len(runs),
        exact_match=sum(one.is_exact for one in scores) / len(runs),
        edit_similarity=sum(one.edit_similarity for one in scores) / len(runs),
        pass_at_1=sum(judged) / len(judged) if judged else None,
        speed=speed_figures([run.measured for run in runs]),
    )


def fim_json(runs: Sequence[FimRun], setting: Setting) -> dict[str, Any]:
    """Figures by language, and what became of each task."""
    tasks = [item_json(run.measured) | asdict(run.score) for run in runs]
    return setting.as_json() | {"languages": plain(fim_figures(runs)), "tasks": plain(tasks)}


def fim_tables(runs: Sequence[FimRun], setting: Setting) -> Group:
    """Scores by language, then speed and drafting."""
    scores = Table("language", "tasks", "pass@1", "exact match", "edit similarity", title="scores")
    parts: list[Table] = [scores]
    for language, figures in fim_figures(runs).items():
        passed = "-" if figures.pass_at_1 is None else f"{figures.pass_at_1:.1%}"
        exact, similarity = f"{figures.exact_match:.1%}", f"{figures.edit_similarity:.1%}"
        scores.add_row(printable(language), str(figures.tasks), passed, exact, similarity)
        parts += [speed_table(language, figures.speed), drafting_table(figures.speed)]
    different = [run.measured.id for run in runs if not run.measured.is_identical]
    return Group(*parts, setting.line, *defects(different))
