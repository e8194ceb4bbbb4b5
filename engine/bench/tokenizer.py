"""A model's tokenizer where its weights are not needed."""

from pathlib import Path

from engine.model.loading.loaded_model import prepare
from engine.model.tokenizer import Tokenizer
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress

_QUANTIZATION = "int8"  # of the converted model whose folder holds the tokenizer


def load_tokenizer(spec: str | None, cache_folder: Path, progress: Progress) -> Tokenizer:
    """Load a model's tokenizer, None meaning the embedded model's. Raises ForegramError."""
    return prepare(spec or DEFAULT_MODEL, _QUANTIZATION, cache_folder, progress).tokenizer()
