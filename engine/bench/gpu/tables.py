"""The sections as tables: a row for each figure's case, a column for each of its fields."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from engine.bench.gpu.cases import Cases, cases_of
from engine.bench.gpu.findings import Findings
from engine.bench.gpu.machine import Bandwidth

Row = dict[str, Any]


def section_table(name: str, findings: Findings) -> RenderableType | None:
    """What a section found, or why it did not; None where there is nothing to say."""
    took = f"{findings.seconds[name]:.0f} s"
    if name in findings.failures:
        return f"{name} ({took}): {findings.failures[name]}"
    result = findings.results[name]
    rows, notes = _rows(result), result.notes if isinstance(result, Cases) else ()
    if not rows:
        return Group(*notes) if notes else None
    return Group(_table(f"{name.replace('_', ' ')} ({took})", rows), *notes)


def failures_table(findings: Findings) -> Table | None:
    """The sections that found nothing, and why; None where there are none."""
    rows = [{"section": name, "why": why} for name, why in findings.failures.items()]
    return _table("SECTIONS WITHOUT FIGURES", rows) if rows else None


def _rows(result: object) -> list[Row]:
    """The cases of a result, in one manner for all sections."""
    return [
        asdict(case) for case in ([result] if isinstance(result, Bandwidth) else cases_of(result))
    ]


def _table(title: str, rows: Sequence[Row]) -> Table:
    table = Table(title=title)
    for name, value in rows[0].items():
        is_number = isinstance(value, (int, float))
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
