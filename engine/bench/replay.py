"""Replays real insertions and edits through the engine, lookahead off and on item by item."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.bench.decoding_options import DecodingOptions
from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.measured import WARM_UP, Bench, Measured
from engine.bench.replay_items import ReplayItem

OnProgress = Callable[[int, int], None]  # items done, items in all


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What became of every item, by kind: completions, edits."""

    runs: dict[str, list[Measured]]

    @property
    def sets(self) -> dict[str, SpeedFigures]:
        """Figures by kind."""
        return {kind: speed_figures(runs) for kind, runs in self.runs.items()}

    @property
    def different(self) -> list[str]:
        """Items whose text changed with lookahead: each is a defect."""
        return [run.id for runs in self.runs.values() for run in runs if not run.is_identical]


def run_replay(
    bench: Bench, items: Sequence[ReplayItem], options: DecodingOptions, on_progress: OnProgress
) -> ReplayReport:
    """Measure every item, off and on in alternating order."""
    bench.engine.complete(WARM_UP)
    runs: dict[str, list[Measured]] = {}
    for number, item in enumerate(items):
        run = bench.measure(item.id, item.package, options.request(item), off_first=number % 2 == 0)
        runs.setdefault(item.kind, []).append(run)
        on_progress(number + 1, len(items))
    return ReplayReport(runs)
