"""A model found by name and converted, as a load does."""

from pathlib import Path

from engine.model.loader import prepared
from engine.model.loading.catalog import locate
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.progress import Progress


def prepare(
    spec: str, quantization: str, cache_folder: Path, progress: Progress
) -> ConvertedModel | FolderModel:
    """Find the model that `spec` names and convert it unless a converted copy exists."""
    return prepared(locate(spec, progress), quantization, cache_folder, progress)
