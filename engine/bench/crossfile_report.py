"""The cross-file benchmark's table for people and its object for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.table import Table

from engine.bench.crossfile import CrossfileRun, crossfile_figures
from engine.bench.report import Setting, plain

_CAPTION = (
    "EM: exact match in %, first: of the first line, ES: similarity, names: all of them right, "
    "lead: the first of them; prompt: tokens, others: of open files; won, lost: EM against none"
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
    table = Table(title="open files", caption=_CAPTION)
    table.add_column("tasks", no_wrap=True)
    table.add_column("open")
    for name in ("EM", "first", "ES", "names", "lead", "prompt", "others", "won", "lost"):
        table.add_column(name, justify="right")
    for group, arms in crossfile_figures(runs).items():
        for arm, of in arms.items():
            shares = (of.exact, of.first_line_exact, of.similarity, of.identifiers, of.lead)
            cells = [f"{100 * share:.1f}" for share in shares]
            cells += [f"{of.prompt_tokens:.0f}", f"{of.neighbour_tokens:.0f}"]
            cells += [str(of.gained), str(of.lost)] if arm != "none" else []
            table.add_row(f"{group} {of.tasks}", "none" if arm == "none" else "files", *cells)
    return Group(table, setting.line)
