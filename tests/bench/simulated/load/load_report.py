"""The figures of `python -m tests.bench load` for people and for programs."""

import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from rich.table import Table

from engine.bench.report import plain
from engine.host.principals import METRICS_NAME
from engine.host.protocol import Status
from tests.bench.simulated.load.load_figures import LoadFigures, Waits

_COUNTS = ("requests", "answered", "superseded", "refused", "failed", "lost")


def load_json(runs: Sequence[LoadFigures], host: Status, seed: int) -> dict[str, Any]:
    """Return figures by number of people, and their host. Only unknown numbers are null."""
    return {
        "seed": seed,
        "model": host.model,
        "device": host.device,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "runs": plain([asdict(run) for run in runs]),
    }


def load_table(runs: Sequence[LoadFigures], host: Status) -> Table:
    title = f"{host.model} {host.dtype} on {host.device}"
    table = Table("people", title=title, caption=_caption(runs))
    for run in runs:
        table.add_column(f"{run.people}", justify="right")
    for row in zip(*(_cells(run).items() for run in runs), strict=True):
        table.add_row(row[0][0], *(value for _, value in row))
    return table


def _cells(run: LoadFigures) -> dict[str, str]:
    return {
        **_waits("to the first text", run.first_text_ms),
        **_waits("to the end, answered", run.answered_ms),
        "slowest person / median one": _told(run.slowest_over_median, ".2f"),
        **{name: f"{getattr(run, name):,}" for name in _COUNTS},
        "computed ahead": f"{run.ahead:,}",
        "tokens a second": f"{run.tokens_per_s:,.0f}",
        "memory of the host, MB": _told(run.memory_mb, ",.0f"),
        "this process was late, ms p99": f"{run.late_ms_p99:.0f}{'!' if run.is_late else ''}",
    }


def _waits(what: str, waits: Waits) -> dict[str, str]:
    shares = {"p50": waits.p50, "p90": waits.p90, "p99": waits.p99}
    return {f"{what}, ms {name}": _told(value, ",.0f") for name, value in shares.items()}


def _told(value: float, form: str) -> str:
    return "-" if isnan(value) else format(value, form)


def _caption(runs: Sequence[LoadFigures]) -> str:
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    how = f"{runs[0].seconds:g} s each, of which a person types {runs[0].active:.0%}"
    parts = [how, f"simulated on {platform.machine()}, {load}"]
    troubles = Counter[str]()
    for run in runs:
        troubles.update(run.troubles)
    parts += [f"{name}: {count}" for name, count in troubles.most_common()]
    if any(isnan(run.memory_mb) for run in runs):
        parts.append(f"no memory: the host tells it to a token by the name of {METRICS_NAME}")
    if any(run.is_late for run in runs):
        parts.append("!: this process did not keep up, and its own time is in the figures")
    return "; ".join(parts)
