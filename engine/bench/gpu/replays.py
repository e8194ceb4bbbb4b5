"""Replay the sets on random weights of real shapes, with the human's text as forced output."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from engine.bench.figures import speed_figures
from engine.bench.gpu.forced import ForcedModel
from engine.bench.gpu.lab import Lab
from engine.bench.gpu.shapes import SHAPES, Shape
from engine.bench.measured import Measured, measure, request_for, without_rules
from engine.bench.task_sets import ReplayItem, grouped
from engine.engine import Engine
from engine.learning import Learning
from engine.model.causal_lm import CausalModel
from engine.model.constraint import ByteTrie
from engine.model.fim import find_fim_format
from engine.model.gpu.step_graphs import warm_up
from engine.model.loaded_model import LoadedModel
from engine.model.loader import prepare
from engine.model.loading.converted_model import SPECIALS_FILE, ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.tokenizer import Tokenizer
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress, counted
from engine.request import CompletionRequest

_POSITIONS = 16384  # tokens that the cache holds
ReadTokenizer = Callable[[Progress], Tokenizer]


@dataclass(frozen=True, slots=True)
class ForcedSpeed:
    """Items of one kind. `different` counts those with another text than the target in some run."""

    model: str
    kind: str
    items: int
    different: int
    tokens: int
    off_tokens_per_s: float
    on_tokens_per_s: float
    on_over_off: float
    tokens_per_step: float
    rows_per_step: float


@dataclass(frozen=True, slots=True)
class ForcedEngine:
    """An engine with a forced model. `encode` is its tokenizer's."""

    engine: Engine
    model: ForcedModel
    encode: Callable[[str], Sequence[int]]

    @classmethod
    def of(
        cls, causal_lm: CausalModel, tokenizer: Tokenizer, folder: Path, progress: Progress
    ) -> "ForcedEngine":
        """Make an engine around a model. It learns into `folder`, which should be empty."""
        model = ForcedModel(causal_lm)
        loaded = LoadedModel(
            name="forced",
            fingerprint="random",
            causal_lm=model,
            tokenizer=tokenizer,
            fim=find_fim_format(tokenizer.vocabulary, "forced"),
            trie=ByteTrie(tokenizer.vocabulary),
        )
        learning = Learning.load(folder / "learned", "forced", causal_lm, progress)
        return cls(Engine(loaded, learning), model, tokenizer.encode)

    def run(
        self, items: Iterable[ReplayItem], decoding: CompletionRequest
    ) -> dict[str, list[tuple[Measured, bool]]]:
        """Return by kind the measured items, and whether both runs of each wrote its target."""

        def ask(item: ReplayItem) -> CompletionRequest:
            """Force the item's target, preceded by the piece that token healing dropped."""
            request = request_for(item, decoding)
            prompt = self.engine.prompt(request)
            self.model.start = len(prompt.ids) - 1
            self.model.target = self.encode(prompt.dropped.decode("utf-8", "replace") + item.target)
            return replace(request, stop=without_rules(max(1, len(self.model.target))))

        runs: dict[str, list[tuple[Measured, bool]]] = {}
        for item, run in measure(self.engine, items, ask):
            is_exact = run.off.token_ids == run.on.token_ids == tuple(self.model.target)
            runs.setdefault(item.kind, []).append((run, is_exact))
        return runs


def measure_replays(
    lab: Lab, shape: Shape, items: Sequence[ReplayItem], read_tokenizer: ReadTokenizer
) -> Iterator[ForcedSpeed]:
    """Replay items on one model, off and on in alternating order."""
    tokenizer, causal_lm = read_tokenizer(lab.progress), lab.model(shape, _POSITIONS)
    warm_up(causal_lm.graphs, lab.progress)  # as a host does, so that no completion waits for it
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        forced = ForcedEngine.of(causal_lm, tokenizer, Path(folder), lab.progress)
        counting = counted(lab.progress, f"replaying on {shape.full_name}", items)
        runs = forced.run(counting, CompletionRequest("", ""))
    for kind, some in runs.items():
        figures = speed_figures([run for run, _ in some])
        yield ForcedSpeed(
            model=shape.full_name,
            kind=kind,
            items=figures.items,
            different=sum(not is_exact for _, is_exact in some),
            tokens=figures.tokens,
            off_tokens_per_s=figures.off.tokens_per_second,
            on_tokens_per_s=figures.on.tokens_per_second,
            on_over_off=figures.on_over_off,
            tokens_per_step=figures.tokens_per_step,
            rows_per_step=figures.rows_per_step,
        )


def first_of_each_kind(items: Sequence[ReplayItem], count: int) -> list[ReplayItem]:
    """Return the first `count` items of each kind."""
    kinds = grouped(items, lambda item: item.kind)
    return list(chain.from_iterable(some[:count] for some in kinds.values()))


def read_tokenizer(folder: Path | None, cache_folder: Path, progress: Progress) -> Tokenizer:
    """Read a folder's tokenizer, or the embedded model's if None. Raises ForegramError."""
    if folder is None:
        return prepare(DEFAULT_MODEL, "int8", cache_folder, progress).tokenizer()
    if (folder / SPECIALS_FILE).exists():
        any_config = next(iter(SHAPES.values()))  # the tokenizer ignores it
        return ConvertedModel(folder, folder.name, "", "", any_config).tokenizer()
    return FolderModel(folder, folder.name).tokenizer()
