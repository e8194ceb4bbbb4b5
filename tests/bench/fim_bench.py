"""Scores fill-in-the-middle tasks."""

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.console import Group
from rich.table import Table

from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.measured import Measured, measure, request_for
from engine.bench.report import Setting, plain
from engine.completer import ServedEngine
from engine.engine import Engine
from engine.model_names import printable
from engine.request import CompletionRequest
from lsp_server.cli import command_parser
from lsp_server.cli.engine_arguments import MODEL, decoding, decoding_options, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.published_fim import published_request, published_score
from tests.bench.scoring import Score, score
from tests.bench.tasks import FimTask, grouped, load_fim_tasks


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {
        "file FILE": "a task set, FILE.jsonl.gz or FILE.jsonl",
        "--count COUNT": "only COUNT tasks",
        "--published": "as Qwen evaluates single lines: its prompt, truncation and judged line, with "
        "lookahead off and on",
    }
    command_parser.add_options(
        parser, {**options, **MODEL, **decoding_options(max_tokens=128), **command_parser.JSON}
    )


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    tasks = load_fim_tasks(arguments.file, arguments.count)
    wanted = decoding(arguments)
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        run = partial(run_published, engine) if arguments.published else partial(run_fim, engine)
        runs = run(tracked(tasks, "tasks"), wanted)
        setting = Setting(engine.info, wanted)
    print_figures(arguments, fim_json(runs, setting), fim_tables(runs, setting))


@dataclass(frozen=True, slots=True)
class FimRun:
    task: FimTask
    text: str
    score: Score
    measured: Measured | None = None  # with lookahead off and on


@dataclass(frozen=True, slots=True)
class FimFigures:
    """Shares of tasks, 0 to 1. `pass_at_1` is None if no task can be run; `speed` likewise."""

    tasks: int
    exact_match: float
    edit_similarity: float
    pass_at_1: float | None
    speed: SpeedFigures | None = None

    @classmethod
    def of(cls, runs: Sequence[FimRun]) -> "FimFigures":
        """Average at least one run."""
        scores = [run.score for run in runs]
        judged = [one.passed for one in scores if one.passed is not None]
        measured = [run.measured for run in runs if run.measured is not None]
        return cls(
            tasks=len(runs),
            exact_match=sum(one.is_exact for one in scores) / len(runs),
            edit_similarity=sum(one.edit_similarity for one in scores) / len(runs),
            pass_at_1=sum(judged) / len(judged) if judged else None,
            speed=speed_figures(measured) if measured else None,
        )


def run_fim(
    engine: ServedEngine, tasks: Iterable[FimTask], wanted: CompletionRequest
) -> list[FimRun]:
    texts = ((task, engine.complete(request_for(task, wanted)).text) for task in tasks)
    return [FimRun(task, text, score(task, text)) for task, text in texts]


def run_published(
    engine: Engine, tasks: Iterable[FimTask], wanted: CompletionRequest
) -> list[FimRun]:
    ask = partial(published_request, tokenizer=engine.model.tokenizer, wanted=wanted)
    return [
        FimRun(task, run.on.text, published_score(task, run.on.text), run)
        for task, run in measure(engine, tasks, ask)
    ]


def fim_figures(runs: Iterable[FimRun]) -> dict[str, FimFigures]:
    languages = grouped(runs, lambda run: run.task.language)
    return {language: FimFigures.of(members) for language, members in languages.items()}


def fim_json(runs: Sequence[FimRun], setting: Setting) -> dict[str, Any]:
    tasks = [{"id": run.task.id, "text": run.text} | asdict(run.score) for run in runs]
    return setting.as_json() | {"languages": plain(fim_figures(runs)), "tasks": plain(tasks)}


def fim_tables(runs: Sequence[FimRun], setting: Setting) -> Group:
    scores = Table("language", "tasks", "pass@1", "exact match", "edit similarity", title="scores")
    if any(run.measured for run in runs):
        scores.add_column("identical")
        scores.add_column("tokens/step")
    for language, figures in fim_figures(runs).items():
        passed = "-" if figures.pass_at_1 is None else f"{figures.pass_at_1:.1%}"
        exact, similarity = f"{figures.exact_match:.1%}", f"{figures.edit_similarity:.1%}"
        speed = figures.speed
        speeds = (f"{speed.identical:.1%}", f"{speed.tokens_per_step:.2f}") if speed else ()
        scores.add_row(printable(language), str(figures.tasks), passed, exact, similarity, *speeds)
    return Group(scores, setting.line)
