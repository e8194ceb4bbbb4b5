"""Draws how long the text takes to come, and what becomes of the requests, by number of people."""

from collections.abc import Sequence
from typing import Any

from engine.bench.plots import COLOURS, label_axes
from tests.bench.simulated.load.load_figures import LoadFigures


def draw_load(runs: Sequence[LoadFigures], figure: Any) -> None:
    """The times to the first text; the shares of the requests."""
    left, right = figure.subplots(1, 2)
    people = [run.people for run in runs]
    for colour, name in zip(COLOURS, ("p50", "p90", "p99"), strict=False):
        waits = [getattr(run.first_text_ms, name) for run in runs]
        left.plot(people, waits, "o-", color=colour, label=name, ms=4)
    for colour, name in zip(COLOURS, ("answered", "superseded", "refused", "failed"), strict=True):
        shares = [100 * getattr(run, name) / max(run.requests, 1) for run in runs]
        right.plot(people, shares, "o-", color=colour, label=name, ms=4)
    left.set_yscale("log")
    _label(left, people, "ms to the first text")
    _label(right, people, "requests (%)")


def _label(axes: Any, people: Sequence[int], up: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(people, [str(count) for count in people])
    label_axes(axes, "people", up)
