"""Replays of sets by a model that outputs their targets, whatever its own probabilities.

Every step runs in full. Then rows that follow the target choose its next token. So text and
acceptance are those of the set, even with random weights.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.bench.figures import SpeedFigures, speed_figures
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, trusted_model
from engine.bench.measured import Measured, measure, request_for
from engine.bench.task_sets import ReplayItem
from engine.config import StopRules
from engine.engine import Engine
from engine.model.causal_lm import CausalModel, Flight, StepInput, StepOutput
from engine.model.gpu.step_graphs import warm_up
from engine.model.loading.folder_model import FolderModel
from engine.model.token_tree import TokenTree, verify
from engine.model.tokenizer import Tokenizer
from engine.model_names import SMALLEST_MODEL
from engine.progress import Progress, counted
from engine.request import CompletionRequest
from tests.support.prepared import engine_of, prepare

_POSITIONS = 16384  # tokens that the cache holds
ReadTokenizer = Callable[[Progress], Tokenizer]


@dataclass(slots=True)
class ForcedModel:
    """A `CausalModel` that outputs `target` after `start` tokens and the current one."""

    model: CausalModel
    target: Sequence[int] = ()
    start: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def begin(self, steps: Sequence[StepInput]) -> "ForcedFlight":
        """Start the steps."""
        return ForcedFlight(self, self.model.begin(steps), steps)

    def spoken(self, step: StepInput, output: StepOutput) -> StepOutput:
        """Replace the choices of rows that follow the target.

        Other rows, and those at its end, keep the model's choice.
        """
        target = np.array(self.target[step.slot.length - self.start :], np.int64)
        if not len(target):
            return output
        path = followers(step.tree, target)
        chosen = output.chosen.copy()
        chosen[path[: len(target)]] = target[: len(path)]
        return replace(
            output, chosen=chosen, path=path, log_probs=np.zeros(len(chosen), np.float32)
        )


@dataclass(frozen=True, slots=True)
class ForcedFlight:
    """A `Flight` of a forced model."""

    model: ForcedModel
    flight: Flight
    steps: Sequence[StepInput]

    def finish(self) -> list[StepOutput | None]:
        """Wait for the outputs, with the target's tokens as choices."""
        return [
            None if output is None else self.model.spoken(step, output)
            for step, output in zip(self.steps, self.flight.finish(), strict=True)
        ]


def followers(tree: TokenTree, target: np.ndarray) -> np.ndarray:
    """Return the path of rows (int64), from the root, whose tokens begin `target`."""
    said = np.append(target, -1)  # no token follows its end
    return verify(tree.token_ids, tree.parents, said[np.minimum(tree.depths, len(target))])


@dataclass(frozen=True, slots=True)
class ForcedSpeed:
    """Items of one kind. `different` counts those with another text than the target in some run."""

    model: str
    kind: str
    different: int
    tokens_per_step: float
    on_tokens_per_s: float
    on_over_off: float
    figures: SpeedFigures


def replay_forced(
    engine: Engine, items: Iterable[ReplayItem], decoding: CompletionRequest
) -> dict[str, list[tuple[Measured, bool]]]:
    """Return by kind the measured items, and whether both runs of each wrote its target."""
    model = engine.model.causal_lm
    assert isinstance(model, ForcedModel)

    def ask(item: ReplayItem) -> CompletionRequest:
        """Force the item's target, preceded by the piece that token healing dropped."""
        request = request_for(item, decoding)
        prompt = engine.laid_out(request)[0]
        model.start = len(prompt.ids) - 1
        owed = prompt.dropped.decode("utf-8", "replace")
        model.target = engine.model.tokenizer.encode(owed + item.target)
        return replace(request, stop=StopRules.verbatim(max(1, len(model.target))))

    runs: dict[str, list[tuple[Measured, bool]]] = {}
    for item, run in measure(engine, items, ask):
        is_exact = run.off.token_ids == run.on.token_ids == tuple(model.target)
        runs.setdefault(item.kind, []).append((run, is_exact))
    return runs


def measure_replays(
    machine: Machine,
    progress: Progress,
    shape: Shape,
    items: Sequence[ReplayItem],
    read_tokenizer: ReadTokenizer,
) -> Iterator[ForcedSpeed]:
    """Replay items on one model, off and on in alternating order."""
    tokenizer, causal_lm = read_tokenizer(progress), trusted_model(shape, _POSITIONS, machine)
    warm_up(causal_lm.graphs, progress)  # as a host does, so that no completion waits for it
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        forced = ForcedModel(causal_lm)
        engine = engine_of("forced", forced, tokenizer, Path(folder), progress)
        counting = counted(progress, f"replaying on {shape.full_name}", items)
        runs = replay_forced(engine, counting, CompletionRequest("", ""))
    for kind, some in runs.items():
        figures = speed_figures([run for run, _ in some])
        yield ForcedSpeed(
            model=shape.full_name,
            kind=kind,
            different=sum(not is_exact for _, is_exact in some),
            tokens_per_step=figures.tokens_per_step,
            on_tokens_per_s=figures.on.tokens_per_second,
            on_over_off=figures.on_over_off,
            figures=figures,
        )


def read_tokenizer(folder: Path | None, cache_folder: Path, progress: Progress) -> Tokenizer:
    """Read a folder's tokenizer, or the embedded model's if None. Raises ForegramError."""
    if folder is None:
        model = prepare(SMALLEST_MODEL, "int8", cache_folder, progress)
        return Tokenizer(model.tokenizer_document())
    return Tokenizer(FolderModel(folder, folder.name).tokenizer_document())
