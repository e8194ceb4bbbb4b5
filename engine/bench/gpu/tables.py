"""The sections as tables: a row for each case, a column for each of its fields."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from engine.bench.gpu.run import GpuBench


def section_table(name: str, bench: GpuBench) -> RenderableType | None:
    """What a section found, or why it did not; None where there is nothing to say."""
    took = f"{bench.seconds[name]:.0f} s"
    if name in bench.failures:
        return f"{name} ({took}): {bench.failures[name]}"
    result = bench.results[name]
    rows = [asdict(case) for case in result.cases]
    if not rows:
        return Group(*result.notes) if result.notes else None
    return Group(_table(f"{name.replace('_', ' ')} ({took})", rows), *result.notes)


def failures_table(bench: GpuBench) -> Table | None:
    """The sections that found nothing, and why; None where there are none."""
    rows = [{"section": name, "why": why} for name, why in bench.failures.items()]
    return _table("SECTIONS WITHOUT FIGURES", rows) if rows else None


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title)
    shown = [name for name, value in rows[0].items() if isinstance(value, (str, int, float))]
    for name in shown:
        is_number = isinstance(rows[0][name], (int, float))
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in shown))
    return table


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
