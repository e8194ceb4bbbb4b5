"""How much open files help: each task without any, and with those that a person would have open."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import Group

from engine.bench.report import Setting, figure_table, plain
from engine.bench.requests import request_for
from engine.bench.scoring import CrossfileScore, crossfile_score, cut
from engine.bench.task_sets import CrossfileTask, grouped
from engine.completer import Completer
from engine.request import CompletionChunk, CompletionRequest, CompletionResult

ARMS = ("none", "open_files")
_CAPTION = (
    "EM: exact match in %, first: of the first line, ES: similarity, names: all of them right, "
    "lead: the first of them; prompt: tokens, others: of open files; won, lost: EM against none"
)


@dataclass(frozen=True, slots=True)
class CrossfileRun:
    """What became of a task in one arm."""

    task: CrossfileTask
    arm: str
    text: str
    result: CompletionResult
    score: CrossfileScore


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """Shares of tasks, 0 to 1, and means. `gained` and `lost` compare the exact ones with `none`."""

    tasks: int
    exact: float
    first_line_exact: float
    similarity: float
    identifiers: float
    lead: float
    prompt_tokens: float
    neighbour_tokens: float  # of these
    gained: int
    lost: int


@dataclass
class _Judged:
    """The text so far; it is enough once the part that is judged has ended."""

    task: CrossfileTask
    text: str = field(default="")
    is_enough: bool = False

    def take(self, chunk: CompletionChunk) -> None:
        self.text += chunk.text
        if "\n" in chunk.text:  # the file is looked through, which takes as long as a step
            self.is_enough = len(cut(self.task, self.text)) < len(self.text)


def run_crossfile(
    engine: Completer, task: CrossfileTask, arm: str, decoding: CompletionRequest
) -> CrossfileRun:
    """Complete and score a task in an arm."""
    judged = _Judged(task)
    shown = task if arm == "open_files" else replace(task, open_buffers=())
    request = replace(request_for(shown, decoding), workspace=f"{task.id}\0{arm}")
    result = engine.complete(request, on_chunk=judged.take, cancelled=lambda: judged.is_enough)
    score = crossfile_score(task, result.text)
    return CrossfileRun(task, arm, cut(task, result.text), result, score)


def crossfile_figures(runs: Sequence[CrossfileRun]) -> dict[str, dict[str, ArmFigures]]:
    """Figures by group, and within it by arm; a stratum of several kinds is also split by them."""
    strata = grouped(runs, lambda run: run.task.stratum)
    is_mixed = {name: len({run.task.kind for run in some}) > 1 for name, some in strata.items()}
    mixed = [run for run in runs if is_mixed[run.task.stratum]]
    groups = strata | grouped(mixed, lambda run: f"- {run.task.kind}")
    return {name: _by_arm(members) for name, members in groups.items()}


def _by_arm(runs: Sequence[CrossfileRun]) -> dict[str, ArmFigures]:
    exact_alone = {run.task.id: run.score.is_exact for run in runs if run.arm == "none"}
    arms = {arm: [run for run in runs if run.arm == arm] for arm in ARMS}
    return {arm: _figures(members, exact_alone) for arm, members in arms.items()}


def _figures(runs: Sequence[CrossfileRun], exact_alone: dict[str, bool]) -> ArmFigures:
    def mean(of: Callable[[CrossfileRun], float]) -> float:
        return sum(map(of, runs)) / len(runs)

    changes = [run.score.is_exact - exact_alone[run.task.id] for run in runs]
    return ArmFigures(
        tasks=len(runs),
        exact=mean(lambda run: run.score.is_exact),
        first_line_exact=mean(lambda run: run.score.is_first_line_exact),
        similarity=mean(lambda run: run.score.similarity),
        identifiers=mean(lambda run: run.score.has_identifiers),
        lead=mean(lambda run: run.score.has_lead),
        prompt_tokens=mean(lambda run: run.result.stats.prompt_tokens),
        neighbour_tokens=mean(lambda run: run.result.stats.neighbour_tokens),
        gained=changes.count(1),
        lost=changes.count(-1),
    )


def crossfile_json(runs: Sequence[CrossfileRun], setting: Setting) -> dict[str, Any]:
    """Figures by group and arm, and what became of each task."""
    tasks = [
        {
            "id": run.task.id,
            "arm": run.arm,
            "text": run.text,
            "prompt_tokens": run.result.stats.prompt_tokens,
            "neighbours": list(run.result.stats.neighbours),
            "finish_reason": run.result.finish_reason.value,
        }
        | asdict(run.score)
        for run in runs
    ]
    return setting.as_json() | {"groups": plain(crossfile_figures(runs)), "tasks": plain(tasks)}


def crossfile_table(runs: Sequence[CrossfileRun], setting: Setting) -> Group:
    """A line for each group and arm."""
    numbers = ("EM", "first", "ES", "names", "lead", "prompt", "others", "won", "lost")
    table = figure_table(["tasks", "open"], numbers, title="open files", caption=_CAPTION)
    table.columns[0].no_wrap = True
    for group, arms in crossfile_figures(runs).items():
        for arm, of in arms.items():
            shares = (of.exact, of.first_line_exact, of.similarity, of.identifiers, of.lead)
            cells = [f"{100 * share:.1f}" for share in shares]
            cells += [f"{of.prompt_tokens:.0f}", f"{of.neighbour_tokens:.0f}"]
            cells += [str(of.gained), str(of.lost)] if arm != "none" else []
            table.add_row(f"{group} {of.tasks}", "none" if arm == "none" else "files", *cells)
    return Group(table, setting.line)
