"""Replays of the sets on random weights of real shapes, the human's text forced as the output."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from engine.bench.figures import SpeedFigures
from engine.bench.forced import forced_replay
from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.shapes import Shape
from engine.bench.replay import ReplayReport
from engine.bench.task_sets import ReplayItem, grouped
from engine.model.byte_trie import ByteTrie
from engine.model.fim import find_fim_format
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.step_graphs import warm_up
from engine.model.loading.loaded_model import LoadedModel
from engine.model.tokenizer import Tokenizer
from engine.options import EngineOptions
from engine.progress import counted
from engine.request import CompletionRequest

_POSITIONS = 16384  # of the cache


@dataclass(frozen=True, slots=True)
class ForcedSpeed:
    """Items of one kind with lookahead and without; `different` did not write their target twice."""

    shape: str
    quantization: str
    kind: str
    items: int
    different: int
    tokens: int
    off_tokens_per_s: float
    on_tokens_per_s: float
    on_over_off_of_totals: float
    on_over_off_of_medians: float
    tokens_per_step: float
    rows_per_step: float


def measure_replays(
    lab: Lab, shape: Shape, items: Sequence[ReplayItem], tokenizer: Tokenizer
) -> Cases[ForcedSpeed]:
    """Replay items on one model, off and on in alternating order."""
    causal_lm = lab.model(shape, _POSITIONS)
    warm_up(causal_lm.graphs, lab.progress)  # as a host does: no completion may wait for a capture
    model = _loaded(causal_lm, tokenizer, shape.name)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        options = EngineOptions(Path(folder))
        replay = forced_replay(model, options, Path(folder) / "learned", lab.progress)
        counting = counted(lab.progress, f"replaying on {shape.full_name}", items)
        report = replay.run(counting, CompletionRequest("", ""))
    kinds = report.sets.items()
    return Cases(tuple(_speed(shape, kind, figures, report) for kind, figures in kinds))


def first_of_each_kind(items: Sequence[ReplayItem], count: int) -> list[ReplayItem]:
    """Return the first `count` items of each kind."""
    kinds = grouped(items, lambda item: item.kind)
    return list(chain.from_iterable(some[:count] for some in kinds.values()))


def _loaded(model: GpuQwen2, tokenizer: Tokenizer, name: str) -> LoadedModel:
    """Give a model a tokenizer, as if they had come from one file."""
    return LoadedModel(
        name=name,
        fingerprint="random",
        causal_lm=model,
        tokenizer=tokenizer,
        fim=find_fim_format(tokenizer.vocabulary, name),
        trie=ByteTrie(tokenizer.vocabulary),
    )


def _speed(shape: Shape, kind: str, figures: SpeedFigures, report: ReplayReport) -> ForcedSpeed:
    inexact = frozenset(report.inexact or ())
    return ForcedSpeed(
        shape=shape.name,
        quantization=shape.quantization_name,
        kind=kind,
        items=figures.items,
        different=sum(run.id in inexact for run in report.runs[kind]),
        tokens=figures.tokens,
        off_tokens_per_s=figures.off.tokens_per_second,
        on_tokens_per_s=figures.on.tokens_per_second,
        on_over_off_of_totals=figures.on_over_off.of_totals,
        on_over_off_of_medians=figures.on_over_off.of_medians,
        tokens_per_step=figures.tokens_per_step,
        rows_per_step=figures.rows_per_step,
    )
