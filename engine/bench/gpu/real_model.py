"""A real model in its own words: the sets, greedy and sampled, and the speed of lookahead."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bench.figures import SpeedFigures
from engine.bench.measured import Bench
from engine.bench.replay import ReplayReport, run_replay
from engine.bench.task_sets import ReplayItem
from engine.config import Sampling, StopRules
from engine.engine import Engine
from engine.learning import Learning
from engine.model.loading.loaded_model import LoadedModel
from engine.options import EngineOptions
from engine.progress import Progress, counted
from engine.request import CompletionRequest

SAMPLINGS = (Sampling(), Sampling(temperature=0.8, seed=1))


@dataclass(frozen=True, slots=True)
class OwnText:
    """A set with one way of drawing. Items whose text changed with lookahead are named."""

    model: str
    quantization: str
    kind: str
    temperature: float
    items: int
    identical_items: int
    different: tuple[str, ...]
    off_tokens_per_s: float
    on_tokens_per_s: float
    on_over_off_of_totals: float
    on_over_off_of_medians: float
    tokens_per_step: float


def measure_own_text(
    model: LoadedModel, items: Sequence[ReplayItem], progress: Progress
) -> tuple[OwnText, ...]:
    """Replay the items, off and on in alternating order, for each way of drawing."""
    found: list[OwnText] = []
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        learning = Learning.load(Path(folder) / "learned", "own", model.causal_lm, progress)
        bench = Bench(Engine(model, learning, EngineOptions(Path(folder))))
        for sampling in SAMPLINGS:
            title = f"{model.name}, temperature {sampling.temperature:g}"
            decoding = CompletionRequest("", "", sampling=sampling, stop=StopRules(max_tokens=64))
            report = run_replay(bench, counted(progress, title, items), decoding)
            found += [
                _figures(model, sampling, kind, report, figures)
                for kind, figures in report.sets.items()
            ]
    return tuple(found)


def _figures(
    model: LoadedModel, sampling: Sampling, kind: str, report: ReplayReport, figures: SpeedFigures
) -> OwnText:
    different = tuple(run.id for run in report.runs[kind] if not run.is_identical)
    return OwnText(
        model=model.name,
        quantization=model.causal_lm.dtype_name,
        kind=kind,
        temperature=sampling.temperature,
        items=figures.items,
        identical_items=figures.items - len(different),
        different=different,
        off_tokens_per_s=figures.off.tokens_per_second,
        on_tokens_per_s=figures.on.tokens_per_second,
        on_over_off_of_totals=figures.on_over_off.of_totals,
        on_over_off_of_medians=figures.on_over_off.of_medians,
        tokens_per_step=figures.tokens_per_step,
    )
