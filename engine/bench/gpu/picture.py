"""The run in four small plots."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.bench.gpu.cases import cases_of
from engine.bench.gpu.findings import THRESHOLD_CONTEXT
from engine.bench.gpu.recipe_speeds import forced_sets
from engine.errors import ConfigurationError

_COLOURS = ("#2a6fbb", "#d1662b", "#3a8f5c", "#8a4fa3", "#6b6b6b", "#b8a13a")


def plots_are_possible() -> bool:
    """Whether matplotlib is there."""
    try:
        import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draw what there is. Raises ConfigurationError where the file cannot be written."""
    module: Any = import_module("matplotlib.figure")
    figure = module.Figure(figsize=(11, 8), dpi=130, layout="constrained")
    plots: tuple[Callable[[Any, Mapping[str, Any]], None], ...] = (_ratios, _rows, _peers, _speeds)
    for axes, plot in zip(figure.subplots(2, 2).flat, plots, strict=True):
        plot(axes, results)
        axes.spines[["top", "right"]].set_visible(False)
    try:
        figure.savefig(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error}") from error


def _ratios(axes: Any, results: Mapping[str, Any]) -> None:  # noqa: ANN401 - matplotlib's
    """Floor over step of one row, by shape and quantization."""
    axes.set_title("least time over step, 1 row")
    steps = cases_of(results.get("steps"))
    bars: dict[str, float] = {}
    for time in steps:
        if time.rows == 1 and time.context in (THRESHOLD_CONTEXT, steps[0].context):
            bars[f"{time.shape} {time.quantization}"] = time.floor_over_step
    axes.bar(list(bars), list(bars.values()), color=_COLOURS[0])
    axes.set_ylim(0, 1)
    axes.tick_params(axis="x", rotation=45)


def _rows(axes: Any, results: Mapping[str, Any]) -> None:  # noqa: ANN401 - matplotlib's
    """Step time by rows, a line per quantization and context of the shape with the full grid."""
    axes.set_title("step by rows")
    lines: dict[str, list[tuple[int, float]]] = {}
    for time in cases_of(results.get("steps")):
        label = f"{time.shape} {time.quantization}, {time.context} tokens"
        lines.setdefault(label, []).append((time.rows, time.step_ms))
    longest = max(map(len, lines.values()), default=0)
    full = [(label, line) for label, line in lines.items() if len(line) == longest]
    for colour, (label, line) in zip(_COLOURS, full, strict=False):
        axes.plot(*zip(*line, strict=True), "o-", color=colour, label=label, ms=3)
    axes.set_xlabel("rows")
    axes.set_ylabel("ms")
    _legend(axes)


def _peers(axes: Any, results: Mapping[str, Any]) -> None:  # noqa: ANN401 - matplotlib's
    """Our products against the fastest peer's, at 1 and 32 rows."""
    axes.set_title("fastest peer's time over ours")
    rows: dict[str, list[float]] = {}
    for time in cases_of(results.get("products")):
        if time.peers_us and time.rows in (1, 32):
            label = f"{time.quantization}\n{time.rows} rows"
            rows.setdefault(label, []).append(min(time.peers_us.values()) / time.ours_us)
    for place, (colour, ratios) in enumerate(zip(_COLOURS, rows.values(), strict=False)):
        axes.plot([place] * len(ratios), ratios, "o", color=colour, ms=4)
    axes.axhline(1.0, color="#888888", linewidth=0.8, zorder=0)
    axes.set_xticks(range(len(rows)), list(rows), fontsize=7)
    axes.set_xlim(-0.5, max(1, len(rows)) - 0.5)


def _speeds(axes: Any, results: Mapping[str, Any]) -> None:  # noqa: ANN401 - matplotlib's
    """Speed-up of each lookahead on each set."""
    axes.set_title("decoding speed over lookahead off")
    sets = forced_sets(results)
    width = 0.8 / max((len(one.speeds) for one in sets), default=1)
    for place, one in enumerate(sets):
        for number, (colour, speed) in enumerate(zip(_COLOURS, one.speeds, strict=False)):
            label = speed.lookahead if place == 0 else None
            where = place + number * width
            axes.bar(where, speed.over_off_of_totals, width, color=colour, label=label)
    axes.set_xticks(
        range(len(sets)), [f"{s.shape} {s.quantization}\n{s.kind}" for s in sets], fontsize=7
    )
    _legend(axes)


def _legend(axes: Any) -> None:  # noqa: ANN401 - matplotlib's
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7)
