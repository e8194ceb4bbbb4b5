"""Scores fill-in-the-middle tasks, and measures their decoding on the way."""

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.measured import Bench, Measured, request_for
from engine.bench.report import (
    Setting,
    defects,
    drafting_table,
    item_json,
    plain,
    speed_table,
)
from engine.bench.task_sets import grouped
from engine.model_names import printable
from engine.request import CompletionRequest
from lsp_server.cli.command_parser import add_json, positive
from lsp_server.cli.engine_arguments import add_decoding, add_model, decoding
from lsp_server.cli.engine_loading import load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.peers import add_peers, compared
from tests.bench.scoring import Score, score
from tests.bench.tasks import FimTask, load_fim_tasks


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    parser.add_argument("file", metavar="FILE.jsonl.gz", type=Path, help="a task set")
    parser.add_argument("--count", type=positive, help="only COUNT tasks")
    add_model(parser)
    add_decoding(parser, max_tokens=128)
    add_json(parser)
    add_peers(parser)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    """Complete and score fill-in-the-middle tasks."""
    tasks = load_fim_tasks(arguments.file, arguments.count)
    with (
        closing(load_engine(arguments, settings, ProgressBars())) as engine,
        compared(arguments, settings) as peers,
    ):
        wanted = decoding(arguments)
        runs = run_fim(Bench(engine, peers), tracked(tasks, "tasks"), wanted)
        setting = Setting(engine.info, wanted, {name: peer.build for name, peer in peers.items()})
    print_figures(arguments, fim_json(runs, setting), fim_tables(runs, setting))


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
        for task, measured in bench.measure(tasks, ask)
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
    return Group(*parts, setting.line, *defects(run.measured for run in runs))
