"""How much a run measures, and on what. The tokenizer is loaded when it is needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bench.gpu.shapes import SHAPES, Shape
from engine.bench.task_sets import ReplayItem
from engine.bench.tokenizer import load_tokenizer
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.stored_tokenizer import SPECIALS_FILE
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; the tests measure little."""

    rows: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (512, 2048, 8192)
    prompts: tuple[int, ...] = (1024, 2048, 4096)
    numbers: int = 1_500_000_000  # float32, that the bandwidth is measured with
    items: int = 30  # of each kind in a replay

    @property
    def kernel_cases(self) -> tuple[tuple[int, int], ...]:
        """Rows and the context that operations are timed at alone."""
        return tuple((rows, self.contexts[1]) for rows in _FEW_ROWS if rows in self.rows)

    @property
    def step_cases(self) -> tuple[tuple[int, int], ...]:
        """Rows and contexts of steps."""
        return tuple((rows, context) for context in self.contexts for rows in self.rows)


_FEW_ROWS = (1, 8, 32, 128)
QUICK = Sizes(items=8)


@dataclass(frozen=True, slots=True)
class BenchInputs:
    """What the caller brings. `tokenizer` is of the items; None is the embedded model's."""

    shapes: tuple[Shape, ...]
    cache_folder: Path
    tokenizer: Path | None = None
    items: Sequence[ReplayItem] = ()

    def load_tokenizer(self, progress: Progress) -> Tokenizer:
        """Read the tokenizer of the replays. Raises ForegramError."""
        if self.tokenizer is not None:
            return read_tokenizer(self.tokenizer)
        return load_tokenizer(None, self.cache_folder, progress)


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read a folder's, with or without the model it belongs to. Raises ForegramError."""
    if (folder / SPECIALS_FILE).exists():
        any_config = next(iter(SHAPES.values()))  # the tokenizer does not look at it
        return ConvertedModel(folder, folder.name, "", "", any_config).tokenizer()
    return FolderModel(folder, folder.name).tokenizer()
