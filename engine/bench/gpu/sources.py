"""Where the run's tokenizer and its real model come from; both are loaded when they are needed."""

from dataclasses import dataclass
from pathlib import Path

from engine.bench.gpu.shapes import SHAPES
from engine.bench.oracle import load_tokenizer
from engine.model.loading.conversion import MARKS_FILE
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.loaded_model import LoadedModel, LoadOptions, load_model
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress


@dataclass(frozen=True, slots=True)
class Sources:
    """What the command line named. `tokenizer` None is the embedded model's, `model` None is none."""

    cache_folder: Path
    tokenizer: Path | None = None
    model: str | None = None
    dtype: str | None = None

    def load_tokenizer(self, progress: Progress) -> Tokenizer:
        """Read the tokenizer of the replays. Raises ForegramError."""
        if self.tokenizer is not None:
            return read_tokenizer(self.tokenizer)
        return load_tokenizer(None, self.cache_folder, progress)

    def load_model(self, progress: Progress) -> LoadedModel:
        """Load the model that speaks for itself. Raises ForegramError."""
        wanted = LoadOptions(spec=self.model, quantization=self.dtype)
        return load_model(wanted, self.cache_folder, progress)


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read a folder's, with or without the model it belongs to. Raises ForegramError."""
    if (folder / MARKS_FILE).exists():
        any_config = next(iter(SHAPES.values()))  # the tokenizer does not look at it
        return ConvertedModel(folder, folder.name, "", "", any_config).tokenizer()
    return FolderModel(folder, folder.name).tokenizer()
