"""Plot a run: the time of each model's steps by rows, and its lower bound."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.bench.gpu.steps import StepTime
from engine.bench.task_sets import grouped
from engine.errors import ConfigurationError

_COLOURS = ("#2a6fbb", "#d1662b", "#3a8f5c", "#8a4fa3")


class StepPlot:
    """A picture to draw; the ending of its path chooses the format."""

    def __init__(self, path: Path) -> None:
        """Check before a long measurement that the picture can be drawn.

        Raises ConfigurationError if matplotlib or the folder is missing, or the format is unknown.
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

    def save(self, times: Sequence[StepTime]) -> None:
        """Draw a line for each model and context, with its floor dashed in the same colour.

        Raises ConfigurationError if the file cannot be written.
        """
        axes = self._figure.subplots()
        lines = grouped(times, lambda time: f"{time.model}, {time.context} tokens")
        for number, (label, line) in enumerate(lines.items()):
            rows, colour = [time.rows for time in line], _COLOURS[number % len(_COLOURS)]
            axes.plot(rows, [time.step_ms for time in line], "o-", color=colour, label=label, ms=3)
            axes.plot(rows, [time.floor_ms for time in line], "--", color=colour, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="ms; dashed: the floor")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        try:
            self._figure.savefig(self._path)
        except OSError as error:
            raise ConfigurationError(f"{self._path} cannot be written: {error}") from error
