"""Scores fill-in-the-middle tasks, and measures their decoding on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.fim_tasks import FimTask
from engine.bench.measured import WARM_UP, Bench, Measured
from engine.bench.scoring import Score, score
from engine.config import Layout, Lookahead, Sampling, StopRules
from engine.request import CompletionRequest

OnProgress = Callable[[int, int], None]  # tasks done, tasks in all


@dataclass(frozen=True, slots=True)
class FimOptions:
    """How every task is completed."""

    max_tokens: int = 128
    layout: Layout = "line"
    lookahead: Lookahead = field(default_factory=Lookahead)
    sampling: Sampling = field(default_factory=Sampling)

    def request(self, task: FimTask) -> CompletionRequest:
        """Ask for the hole's text as an editor would, with no other buffer open."""
        return CompletionRequest(
            prefix=task.prefix,
            suffix=task.suffix,
            path=f"task.{task.language}",
            layout=self.layout,
            lookahead=self.lookahead,
            sampling=self.sampling,
            stop=StopRules(max_tokens=self.max_tokens),
        )


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


@dataclass(frozen=True, slots=True)
class FimReport:
    """All runs, in the order of the tasks."""

    runs: tuple[FimRun, ...]

    @property
    def languages(self) -> dict[str, FimFigures]:
        """Figures by language."""
        groups: dict[str, list[FimRun]] = {}
        for run in self.runs:
            groups.setdefault(run.task.language, []).append(run)
        return {language: fim_figures(runs) for language, runs in groups.items()}


def run_fim(
    bench: Bench, tasks: Sequence[FimTask], options: FimOptions, on_progress: OnProgress
) -> FimReport:
    """Complete and score every task; the score is that of the text with lookahead."""
    bench.engine.complete(WARM_UP)
    runs = []
    for number, task in enumerate(tasks):
        measured = bench.measure(
            task.id, task.language, options.request(task), off_first=number % 2 == 0
        )
        runs.append(FimRun(task, measured, score(task, measured.on.text)))
        on_progress(number + 1, len(tasks))
    return FimReport(tuple(runs))


def fim_figures(runs: Sequence[FimRun]) -> FimFigures:
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
