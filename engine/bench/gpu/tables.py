"""The sections as tables: a row for each figure's case, a column for each of its fields."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from engine.bench.gpu.attention import Attention
from engine.bench.gpu.cases import Cases, cases_of
from engine.bench.gpu.compiling import Compiled
from engine.bench.gpu.findings import Findings, Threshold
from engine.bench.gpu.machine import Bandwidth
from engine.bench.gpu.products import ProductTime
from engine.bench.gpu.replays import NOTE, ForcedSet

Row = dict[str, Any]


def section_table(name: str, findings: Findings) -> RenderableType | None:
    """What a section found, or why it did not; None where there is nothing to say."""
    took = f"{findings.seconds[name]:.0f} s"
    if name in findings.failures:
        return f"{name} ({took}): {findings.failures[name]}"
    result = findings.results[name]
    rows = _rows(result)
    if not rows:
        return Group(*notes) if (notes := _notes(result)) else None
    return Group(_table(f"{name.replace('_', ' ')} ({took})", rows), *_notes(result))


def thresholds_table(thresholds: Iterable[Threshold]) -> Table:
    """What we promise, and whether it is kept."""
    verdicts = {None: "not measured", True: "met", False: "MISSED"}
    rows = [
        {
            "threshold": threshold.name,
            "bound": f"{'<=' if threshold.is_lower_better else '>='} {threshold.bound:g}",
            "value": threshold.value,
            "verdict": verdicts[threshold.is_met],
        }
        for threshold in thresholds
    ]
    return _table("thresholds", rows)


def failures_table(findings: Findings) -> Table | None:
    """The sections that found nothing, and why; None where there are none."""
    rows = [{"section": name, "why": why} for name, why in findings.failures.items()]
    return _table("SECTIONS WITHOUT FIGURES", rows) if rows else None


def _rows(result: object) -> list[Row]:
    """The cases of a result, in one manner for all sections."""
    if isinstance(result, Bandwidth):
        ways = result.read_by_way_gb_per_s.items()
        row = asdict(result) | {f"by {way}": speed for way, speed in ways}
        del row["read_by_way_gb_per_s"]
        return [row]
    if isinstance(result, Compiled):
        return [asdict(result) | {"failures": len(result.failures)}]
    return [row for case in cases_of(result) for row in _case_rows(case)]


def _case_rows(case: Any) -> list[Row]:  # noqa: ANN401 - any section's data class
    if isinstance(case, ForcedSet):
        head = {"shape": case.shape, "quantization": case.quantization, "kind": case.kind}
        off = {"off_tokens_per_s": case.off_tokens_per_s}
        return [head | asdict(speed) | off for speed in case.speeds]
    if isinstance(case, ProductTime):
        return [_product_row(case)]
    row = asdict(case)
    if "different" in row:
        row["different"] = len(row["different"])
    return [row]


def _product_row(time: ProductTime) -> Row:
    row = asdict(time)
    peers: Mapping[str, float] = row.pop("peers_us")
    best = min(peers, key=lambda name: peers[name], default=None)
    us = None if best is None else peers[best]
    ratio = None if us is None else us / time.ours_us
    return row | {"fastest_peer": best, "peer_us": us, "peer_over_ours": ratio}


def _notes(result: object) -> Sequence[str]:
    if isinstance(result, Compiled):
        return result.failures
    notes = list(result.notes) if isinstance(result, Cases) else []
    if isinstance(result, Attention):
        launches, different = result.stress.launches, result.stress.different
        notes.append(f"{launches} launches over the same numbers, {different} of them different")
    if any(isinstance(case, ForcedSet) for case in cases_of(result)):
        notes.append(NOTE)
    return notes


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
    return f"{value:,}" if isinstance(value, int) else str(value)
