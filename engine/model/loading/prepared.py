"""From a model's name to something that can be loaded: the one entry to this package's files."""

from dataclasses import dataclass
from pathlib import Path

from engine.model.loading.catalog import locate
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.located_model import FolderModel
from engine.model.loading.store import ModelStore
from engine.model.loading.weight_source import folder_end_ids, folder_tokenizer_json
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """A model that transformers has to run: its folder is its form."""

    located: FolderModel

    @property
    def name(self) -> str:
        """What to call it in reports."""
        return self.located.name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the model's files do; hexadecimal."""
        return self.located.fingerprint

    @property
    def folder(self) -> Path:
        """Where transformers finds configuration and weights."""
        return self.located.folder

    @property
    def architecture(self) -> str:
        """The class that the configuration names."""
        return self.located.architecture

    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer. Raises UnsupportedModelError without tokenizer.json."""
        folder = self.located.folder
        return Tokenizer.from_json(folder_tokenizer_json(folder), folder_end_ids(folder))


def prepare(
    spec: str, variant: str, cache_folder: Path, progress: Progress, hub_cache: Path | None = None
) -> ConvertedModel | ForeignModel:
    """Find the model that `spec` names and convert it unless that was done before.

    `variant` is the form of the weights, a key of `packing.VARIANTS`; a model that is no plain
    Qwen2 stays as it is. `hub_cache` None is the hub's usual folder. Raises ForegramError of every
    kind: not found, damaged, unsupported, no space.
    """
    located = locate(spec, hub_cache)
    if isinstance(located, FolderModel) and not located.is_plain_qwen2:
        return ForeignModel(located)
    return ModelStore(cache_folder / "models").obtain(located, variant, progress)
