"""How much a run measures, and on what. Models and tokenizer are loaded when they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bench.gpu.findings import THRESHOLD_CONTEXT
from engine.bench.gpu.shapes import SHAPES, Shape
from engine.bench.oracle import load_tokenizer
from engine.bench.task_sets import FimTask, ReplayItem
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.loaded_model import LoadedModel, load_model
from engine.model.loading.stored_tokenizer import SPECIALS_FILE
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; the tests measure little."""

    rows: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (512, THRESHOLD_CONTEXT, 8192)
    prompts: tuple[int, ...] = (1024, 2048, 4096)
    numbers: int = 1_500_000_000  # float32, that the bandwidth is measured with
    launches: int = 100_000  # of a split product over the same numbers; of attention a tenth
    rounds: int = 2  # of random trees, greedy and sampled in turn
    items: int = 30  # of each kind in a replay
    pass_seconds: float = 20.0  # that one kind has with one lookahead
    chat_prompts: int = 20
    chat_tokens: int = 256
    total_seconds: float = 380.0  # after which optional sections are left out


QUICK = Sizes(launches=10_000, rounds=1, items=8, pass_seconds=10.0, chat_prompts=4)


@dataclass(frozen=True, slots=True)
class BenchInputs:
    """What the caller brings: shapes, what to load, the items of all sets, and tasks to chat about.

    `tokenizer` None is the embedded model's, `model` None is none.
    """

    shapes: tuple[Shape, ...]
    cache_folder: Path
    tokenizer: Path | None = None
    model: str | None = None
    dtype: str | None = None
    items: Sequence[ReplayItem] = ()
    tasks: Sequence[FimTask] = ()

    def load_tokenizer(self, progress: Progress) -> Tokenizer:
        """Read the tokenizer of the replays. Raises ForegramError."""
        if self.tokenizer is not None:
            return read_tokenizer(self.tokenizer)
        return load_tokenizer(None, self.cache_folder, progress)

    def load_model(self, progress: Progress) -> LoadedModel:
        """Load the model that speaks for itself. Raises ForegramError."""
        return load_model(self.model, self.cache_folder, progress, quantization=self.dtype)


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read a folder's, with or without the model it belongs to. Raises ForegramError."""
    if (folder / SPECIALS_FILE).exists():
        any_config = next(iter(SHAPES.values()))  # the tokenizer does not look at it
        return ConvertedModel(folder, folder.name, "", "", any_config).tokenizer()
    return FolderModel(folder, folder.name).tokenizer()
