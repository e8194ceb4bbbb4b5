"""Draws what a replay's items gained, and a step's time by its rows."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from engine.bench.replay import ReplayReport
from engine.bench.step import MachineLimits, StepParts
from engine.errors import ConfigurationError

COLOURS = ("#2a6fbb", "#d1662b", "#3a8f5c", "#8a4fa3")


class Picture:
    """A picture to draw; the ending of its path chooses the format."""

    def __init__(self, path: Path) -> None:
        """Check before a long measurement that the picture can be drawn.

        Raises ConfigurationError without matplotlib, without the folder, for an unknown format.
        """
        try:
            module: Any = import_module("matplotlib.figure")
        except ImportError as error:
            raise ConfigurationError(
                f"matplotlib is not installed ({error}); run pip install 'foregram[plots]'"
            ) from error
        self._path = path
        self._figure = module.Figure(figsize=(10, 4), dpi=150, layout="constrained")
        formats = sorted(self._figure.canvas.get_supported_filetypes())
        if path.suffix.lstrip(".") not in formats:
            raise ConfigurationError(f"{path} ends in none of {', '.join(formats)}")
        if not path.absolute().parent.is_dir():
            raise ConfigurationError(f"there is no folder {path.absolute().parent}")

    def save(self, draw: Callable[[Any], None]) -> None:
        """Have `draw` fill the figure. Raises ConfigurationError where it cannot be written."""
        draw(self._figure)
        try:
            self._figure.savefig(self._path)
        except OSError as error:
            raise ConfigurationError(f"{self._path} cannot be written: {error}") from error


def label_axes(axes: Any, across: str, up: str) -> None:  # noqa: ANN401 - matplotlib's
    """Name the axes and what is drawn, with no more lines around it than these two."""
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_replay(report: ReplayReport, figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    """Every item's tokens per step and speed-up, each kind sorted on its own."""
    left, right = figure.subplots(1, 2)
    for colour, (kind, runs) in zip(COLOURS, sorted(report.runs.items()), strict=False):
        figures = report.sets[kind]
        steps = [run.on.stats.tokens_per_step for run in runs if run.on.stats.steps]
        _plot(left, colour, f"{kind}: {figures.tokens_per_step:.2f} in all", steps)
        speed_ups = [run.speed_up for run in runs if run.speed_up is not None]
        _plot(right, colour, f"{kind}: {figures.on_over_off.of_totals:.2f} x in all", speed_ups)
    _label_gain(left, "tokens per step")
    _label_gain(right, "speed-up over lookahead off")


def draw_steps(times: Sequence[StepParts], limits: MachineLimits, figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    """A step's time by its rows at each context, and the least that it could take."""
    axes = figure.subplots()
    for colour, context in zip(COLOURS, dict.fromkeys(one.context for one in times), strict=False):
        line = [(one.rows, one.ms) for one in times if one.context == context]
        shown = f"behind {context} tokens"
        axes.plot(*zip(*line, strict=True), "o-", color=colour, label=shown, ms=3)
    rows = sorted({one.rows for one in times})
    axes.plot(
        rows, [limits.least_ms(count) for count in rows], "--", color="#888888", label="least"
    )
    label_axes(axes, "rows", "ms")


def _plot(axes: Any, colour: str, label: str, values: list[float]) -> None:  # noqa: ANN401 - matplotlib's
    """Draw one dot for each value, the largest first, at its share of all."""
    share = (np.arange(len(values)) + 0.5) / max(len(values), 1)
    axes.plot(100 * share, sorted(values, reverse=True), ".", color=colour, label=label, ms=4)


def _label_gain(axes: Any, quantity: str) -> None:  # noqa: ANN401 - matplotlib's
    """Name the axes and mark plain decoding, which is 1 in both pictures."""
    axes.axhline(1.0, color="#888888", linewidth=0.8, zorder=0)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    label_axes(axes, "items, best first (%)", quantity)
