"""Scores fill-in-the-middle tasks."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group
from rich.table import Table

from engine.bench.measured import request_for
from engine.bench.report import Setting, plain
from engine.model_names import printable
from engine.request import CompletionRequest, Done
from lsp_server.cli import command_parser
from lsp_server.cli.engine_arguments import MODEL, decoding, decoding_options, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.scoring import Score, score
from tests.bench.tasks import FimTask, grouped, load_fim_tasks


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {"file FILE": "a task set, FILE.jsonl.gz", "--count COUNT": "only COUNT tasks"}
    command_parser.add_options(
        parser, {**options, **MODEL, **decoding_options(max_tokens=128), **command_parser.JSON}
    )


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    tasks = load_fim_tasks(arguments.file, arguments.count)
    wanted = decoding(arguments)
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        runs = run_fim(engine.complete, tracked(tasks, "tasks"), wanted)
        setting = Setting(engine.info, wanted)
    print_figures(arguments, fim_json(runs, setting), fim_tables(runs, setting))


@dataclass(frozen=True, slots=True)
class FimRun:
    task: FimTask
    text: str
    score: Score


@dataclass(frozen=True, slots=True)
class FimFigures:
    """Shares of tasks, 0 to 1. `pass_at_1` is None if no task can be run."""

    tasks: int
    exact_match: float
    edit_similarity: float
    pass_at_1: float | None

    @classmethod
    def of(cls, runs: Sequence[FimRun]) -> "FimFigures":
        """Average at least one run."""
        scores = [run.score for run in runs]
        judged = [one.passed for one in scores if one.passed is not None]
        return cls(
            tasks=len(runs),
            exact_match=sum(one.is_exact for one in scores) / len(runs),
            edit_similarity=sum(one.edit_similarity for one in scores) / len(runs),
            pass_at_1=sum(judged) / len(judged) if judged else None,
        )


def run_fim(
    complete: Callable[[CompletionRequest], Done],
    tasks: Iterable[FimTask],
    wanted: CompletionRequest,
) -> list[FimRun]:
    texts = ((task, complete(request_for(task, wanted)).text) for task in tasks)
    return [FimRun(task, text, score(task, text)) for task, text in texts]


def fim_figures(runs: Iterable[FimRun]) -> dict[str, FimFigures]:
    languages = grouped(runs, lambda run: run.task.language)
    return {language: FimFigures.of(members) for language, members in languages.items()}


def fim_json(runs: Sequence[FimRun], setting: Setting) -> dict[str, Any]:
    tasks = [{"id": run.task.id, "text": run.text} | asdict(run.score) for run in runs]
    return setting.as_json() | {"languages": plain(fim_figures(runs)), "tasks": plain(tasks)}


def fim_tables(runs: Sequence[FimRun], setting: Setting) -> Group:
    scores = Table("language", "tasks", "pass@1", "exact match", "edit similarity", title="scores")
    for language, figures in fim_figures(runs).items():
        passed = "-" if figures.pass_at_1 is None else f"{figures.pass_at_1:.1%}"
        exact, similarity = f"{figures.exact_match:.1%}", f"{figures.edit_similarity:.1%}"
        scores.add_row(printable(language), str(figures.tasks), passed, exact, similarity)
    return Group(scores, setting.line)
