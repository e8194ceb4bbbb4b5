"""Models made ready as a load does: found by name and converted, or for an engine."""

from pathlib import Path

from engine.engine import USUAL_SIZES, Engine, PromptSizes
from engine.learning import Learning
from engine.model.causal_lm import CausalModel, LoadedModel
from engine.model.fim import find_fim_format
from engine.model.loader import prepared
from engine.model.loading.catalog import locate
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress


def prepare(
    spec: str, quantization: str, cache_folder: Path, progress: Progress
) -> ConvertedModel | FolderModel:
    """Find the model that `spec` names and convert it unless a converted copy exists."""
    return prepared(locate(spec, progress), quantization, cache_folder, progress)


def engine_of(
    name: str,
    causal_lm: CausalModel,
    tokenizer: Tokenizer,
    folder: Path,
    progress: Progress,
    sizes: PromptSizes = USUAL_SIZES,
) -> Engine:
    """Make an engine that learns into `folder`, which should be empty."""
    fim = find_fim_format(tokenizer.vocabulary, name)
    loaded = LoadedModel(name, "0" * 16, causal_lm, tokenizer, fim)
    return Engine(loaded, Learning.load(folder, name, causal_lm, progress), sizes)
