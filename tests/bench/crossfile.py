"""Measures how much other files help: those that a person has open, and the repository's."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import Group

from engine.bench.figures import percentile
from engine.bench.measured import request_for
from engine.bench.report import Setting, figure_table, plain
from engine.completer import ServedEngine
from engine.request import (
    Buffer,
    Chunk,
    ClosedBuffers,
    CompletionRequest,
    Done,
    Snippet,
)
from tests.bench.pairing import Paired, paired
from tests.bench.scoring import CrossfileScore, crossfile_score, cut
from tests.bench.tasks import CrossfileTask, grouped

ARMS = ("none", "open_files", "repository", "together", "oracle")
_WITH_FILES = ("open_files", "together")
_CAPTION = (
    "EM: exact match in %, ES: similarity, names: all of them right; prompt: tokens, others: of other files; steps: tokens per step; "
    "found: the file that defines the answer is shown; ms: to retrieve, p50; won, lost: EM against "
    "none, p by McNemar; times: EM over none's, 95 % of draws of packages"
)
_NUMBERS = ("EM", "ES", "names", "prompt", "others", "steps", "found", "ms")
_PAIRED = ("won", "lost", "p", "times", "95 %")
_HEAD = re.compile(r"^# (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """An index's excerpts of files that are not open, and the time to get them."""

    snippets: tuple[Snippet, ...] = ()
    ms: float = 0.0


# Asks an index of the task's tree. It must not show the task's own file, nor open files.
AskIndex = Callable[[CrossfileTask, tuple[Buffer, ...]], Retrieved]


@dataclass(frozen=True, slots=True)
class CrossfileRun:
    task: CrossfileTask
    arm: str
    text: str
    result: Done
    score: CrossfileScore
    retrieval_ms: float

    @property
    def shown(self) -> tuple[str, ...]:
        return (*self.result.cost.neighbours, *self.result.cost.repository)


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """Shares of tasks, 0 to 1, and means. `paired` compares the exact ones with `none`."""

    tasks: int
    exact: float
    similarity: float
    identifiers: float
    prompt_tokens: float
    other_tokens: float  # tokens of other files in the prompt
    tokens_per_step: float
    recall: float  # share of prompts with the file that defines the answer
    retrieval_ms: float  # p50
    paired: Paired


@dataclass
class _Judged:
    """The text so far; it is complete once the part to judge has ended."""

    task: CrossfileTask
    text: str = field(default="")
    is_enough: bool = False

    def take(self, chunk: Chunk) -> None:
        self.text += chunk.text
        if "\n" in chunk.text:  # judging takes as long as a step
            self.is_enough = len(cut(self.task, self.text)) < len(self.text)


def run_crossfile(
    engine: ServedEngine,
    task: CrossfileTask,
    arm: str,
    decoding: CompletionRequest,
    retrieve: AskIndex,
) -> CrossfileRun:
    judged = _Judged(task)
    shown = task if arm in _WITH_FILES else replace(task, open_buffers=())
    found = Retrieved()
    if arm in ("repository", "together"):
        found = retrieve(task, shown.open_buffers)
    elif arm == "oracle":
        found = Retrieved(_oracle(task))
    request = replace(
        request_for(shown, decoding),
        workspace=f"{task.id}\0{arm}",
        repository=found.snippets,
    )
    result = engine.complete(request, on_chunk=judged.take, cancelled=lambda: judged.is_enough)
    engine.forget(_all_of(request))  # or the next arm would draft this one's text
    score = crossfile_score(task, result.text)
    return CrossfileRun(task, arm, cut(task, result.text), result, score, found.ms)


def _all_of(request: CompletionRequest) -> ClosedBuffers:
    opened = [one.path for one in request.open_buffers]
    paths = frozenset([request.path, *opened, *(one.path for one in request.repository)])
    return ClosedBuffers(request.workspace, paths, paths, "", frozenset())


def crossfile_figures(runs: Sequence[CrossfileRun]) -> dict[str, dict[str, ArmFigures]]:
    """Return figures by group, and within it by arm; a stratum of several kinds is also split."""
    strata = grouped(runs, lambda run: run.task.stratum)
    is_mixed = {name: len({run.task.kind for run in some}) > 1 for name, some in strata.items()}
    mixed = [run for run in runs if is_mixed[run.task.stratum]]
    groups = strata | grouped(mixed, lambda run: f"- {run.task.kind}")
    return {name: _by_arm(members) for name, members in groups.items()}


def _by_arm(runs: Sequence[CrossfileRun]) -> dict[str, ArmFigures]:
    arms = grouped(runs, lambda run: run.arm)
    return {arm: _figures(members, arms["none"]) for arm, members in arms.items()}


def _figures(runs: Sequence[CrossfileRun], alone: Sequence[CrossfileRun]) -> ArmFigures:
    def mean(of: Callable[[CrossfileRun], float]) -> float:
        return sum(map(of, runs)) / len(runs)

    exact, exact_alone = (
        {run.task.id: run.score.is_exact for run in some} for some in (runs, alone)
    )
    steps = sum(run.result.cost.steps for run in runs)
    return ArmFigures(
        tasks=len(runs),
        exact=mean(lambda run: run.score.is_exact),
        similarity=mean(lambda run: run.score.similarity),
        identifiers=mean(lambda run: run.score.has_identifiers),
        prompt_tokens=mean(lambda run: run.result.cost.prompt_tokens),
        other_tokens=mean(
            lambda run: run.result.cost.neighbour_tokens + run.result.cost.repository_tokens
        ),
        tokens_per_step=sum(run.result.cost.tokens for run in runs) / (steps or 1),
        recall=mean(lambda run: run.task.definition_path in run.shown),
        retrieval_ms=percentile([run.retrieval_ms for run in runs], 50),
        paired=paired(exact, exact_alone, {run.task.id: run.task.package for run in runs}),
    )


def _oracle(task: CrossfileTask) -> tuple[Snippet, ...]:
    """Return the definitions that the answer uses, as an oracle would."""
    pieces = _HEAD.split(task.definition_text)[1:]
    pairs = zip(pieces[::2], pieces[1::2], strict=True)
    return tuple(Snippet(path, f"{text.strip(chr(10))}\n") for path, text in pairs)


def crossfile_json(runs: Sequence[CrossfileRun], setting: Setting) -> dict[str, Any]:
    tasks = [
        {
            "id": run.task.id,
            "arm": run.arm,
            "text": run.text,
            "neighbours": list(run.result.cost.neighbours),
            "repository": list(run.result.cost.repository),
            "retrieval_ms": run.retrieval_ms,
        }
        | asdict(run.score)
        for run in runs
    ]
    return setting.as_json() | {"groups": plain(crossfile_figures(runs)), "tasks": plain(tasks)}


def crossfile_table(runs: Sequence[CrossfileRun], setting: Setting) -> Group:
    table = figure_table(
        ["tasks", "shown"], [*_NUMBERS, *_PAIRED], title="other files", caption=_CAPTION
    )
    table.columns[0].no_wrap = True
    for group, arms in crossfile_figures(runs).items():
        for arm, of in arms.items():
            shares = (of.exact, of.similarity, of.identifiers)
            cells = [f"{100 * share:.1f}" for share in shares]
            cells += [f"{of.prompt_tokens:.0f}", f"{of.other_tokens:.0f}"]
            cells += [f"{of.tokens_per_step:.2f}", f"{100 * of.recall:.0f}"]
            cells += [f"{of.retrieval_ms:.1f}", *_paired_cells(of.paired)] if arm != "none" else []
            table.add_row(f"{group} {of.tasks}", arm.replace("_", " "), *cells)
    return Group(table, setting.line)


def _paired_cells(one: Paired) -> list[str]:
    between = f"{one.ratio_low:.2f}-{one.ratio_high:.2f}"
    return [str(one.gained), str(one.lost), f"{one.p_value:.3f}", f"{one.ratio:.2f}", between]
