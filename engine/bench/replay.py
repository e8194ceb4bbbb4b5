"""Replays real insertions and edits through the engine, lookahead off and on item by item."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.measured import WARM_UP, Bench, Measured
from engine.bench.replay_items import ReplayItem
from engine.config import Layout, Lookahead, Sampling, StopRules
from engine.request import CompletionRequest

OnProgress = Callable[[int, int], None]  # items done, items in all


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How every item is completed."""

    max_tokens: int = 64
    layout: Layout = "line"
    lookahead: Lookahead = field(default_factory=Lookahead)
    sampling: Sampling = field(default_factory=Sampling)
    stops_by_rules: bool = True  # False: only end tokens and max_tokens end a completion

    @property
    def stop(self) -> StopRules:
        """The rules of a user's completion, or as good as none."""
        if self.stops_by_rules:
            return StopRules(max_tokens=self.max_tokens)
        return StopRules(
            max_tokens=self.max_tokens,
            suffix=False,
            indentation=False,
            repetition=False,
            max_blank_lines=self.max_tokens,
        )

    def request(self, item: ReplayItem) -> CompletionRequest:
        """Ask for the item's target as an editor would."""
        return CompletionRequest(
            prefix=item.prefix,
            suffix=item.suffix,
            path=item.path,
            open_buffers=item.open_buffers,
            layout=self.layout,
            lookahead=self.lookahead,
            sampling=self.sampling,
            stop=self.stop,
        )


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
    bench: Bench, items: Sequence[ReplayItem], options: ReplayOptions, on_progress: OnProgress
) -> ReplayReport:
    """Measure every item, off and on in alternating order."""
    bench.engine.complete(WARM_UP)
    runs: dict[str, list[Measured]] = {}
    for number, item in enumerate(items):
        run = bench.measure(item.id, item.package, options.request(item), off_first=number % 2 == 0)
        runs.setdefault(item.kind, []).append(run)
        on_progress(number + 1, len(items))
    return ReplayReport(runs)
