"""One plot of a run: the steps of each model by their rows, and the least that they could take."""

from collections.abc import Sequence
from typing import Any

from engine.bench.gpu.steps import StepTime
from engine.bench.plots import COLOURS, label_axes
from engine.bench.task_sets import grouped


def draw_steps(times: Sequence[StepTime], figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    """A line for each model and context, its floor as a dashed one of the same colour."""
    axes = figure.subplots()
    lines = grouped(times, lambda time: f"{time.shape}, {time.context} tokens")
    for number, (label, line) in enumerate(lines.items()):
        rows, colour = [time.rows for time in line], COLOURS[number % len(COLOURS)]
        axes.plot(rows, [time.step_ms for time in line], "o-", color=colour, label=label, ms=3)
        axes.plot(rows, [time.floor_ms for time in line], "--", color=colour, linewidth=0.8)
    axes.set(xscale="log", yscale="log")
    label_axes(axes, "rows", "ms; dashed: the floor")
