"""The cache of converted models: one folder per model and quantization, renamed when complete."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock

from engine.errors import CacheError, ConfigurationError, ModelCorruptError
from engine.model.loading.catalog import LocatedModel, check_source, on_disk
from engine.model.loading.conversion import convert
from engine.model.loading.converted_model import FILE_FORMS, ConvertedModel
from engine.model.loading.gguf_model import GgufModel
from engine.model.model_config import ModelConfig
from engine.offline_parts import EmbeddedModel
from engine.progress import Progress
from engine.shared_lock import shared_lock

_VERSION = "v7"  # increased whenever the files change, so that old folders do not match
_GIGABYTE = 1e9  # bytes; decimal, as in other messages
_BYTES_PER_WEIGHT = {"int8": 1, "bfloat16": 2, "float32": 4, FILE_FORMS: 1.1}
_SLACK_BYTES = 64 << 20  # tokenizer, scales, header


def obtain(
    folder: Path, located: LocatedModel, quantization: str, progress: Progress
) -> ConvertedModel:
    """Return the model, after converting it into `folder` if needed. Raises ForegramError."""
    if quantization not in _BYTES_PER_WEIGHT:
        known = ", ".join(sorted(_BYTES_PER_WEIGHT.keys() - {FILE_FORMS}))
        raise ConfigurationError(f"dtype {quantization!r} is none of {known}")
    fingerprint = located.fingerprint
    entry = folder / f"{_stem(located)}-{quantization}-{_VERSION}"
    if model := _load(entry, fingerprint, progress):
        return model
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(entry.with_name(f".{entry.name}.lock"))  # freed when its process dies
        with shared_lock(lock, "waiting for another process that converts the model", progress):
            if not _load(entry, fingerprint, Progress()):  # another process may have converted it
                _convert(located, fingerprint, quantization, entry, progress)
            return ConvertedModel.load(entry)
    except OSError as error:
        raise CacheError(f"the model cannot be converted in {folder}: {error}") from error


def _convert(
    located: LocatedModel, fingerprint: str, quantization: str, entry: Path, progress: Progress
) -> None:
    with _draft_folder(entry) as draft:
        if isinstance(located, EmbeddedModel):
            _check_space(entry.parent, located.name, located.num_bytes)
        with TemporaryDirectory(dir=draft) as scratch:
            source = on_disk(located, Path(scratch), progress)
            check_source(source)
            _check_space(entry.parent, located.name, _converted_bytes(source.config, quantization))
            convert(source, located.name, fingerprint, quantization, draft, progress)
        for path in draft.iterdir():  # so that their content is on disk before the rename
            with path.open("rb") as file:
                os.fsync(file.fileno())
        stem = _stem(located)
        for other in entry.parent.glob(f"{stem.rpartition('-')[0]}-*-{quantization}-*"):
            if other.name.startswith(stem) or not other.name.endswith(_VERSION):
                shutil.rmtree(other, ignore_errors=True)
                if other != entry:
                    other.with_name(f".{other.name}.lock").unlink(missing_ok=True)
        draft.rename(entry)


def _check_space(folder: Path, name: str, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise CacheError(
            f"no space to convert {name}: it needs {needed / _GIGABYTE:.1f} GB in "
            f"{folder}, where {free / _GIGABYTE:.1f} GB are free; make room, or "
            "name another cache folder in FOREGRAM_CACHE"
        )


def _converted_bytes(config: ModelConfig, quantization: str) -> int:
    """Estimate the disk space of a converted model, erring on the large side."""
    # With an int8 head, the embedding has 16 bits, as it may have in a model's file.
    is_mixed = quantization in ("int8", FILE_FORMS)
    embedding = 2 * config.vocab_size * config.hidden_size if is_mixed else 0
    return int(_BYTES_PER_WEIGHT[quantization] * config.num_parameters) + embedding + _SLACK_BYTES


def _stem(located: LocatedModel) -> str:
    name = re.sub(r"[^\w.-]+", "-", located.name)
    if isinstance(located, EmbeddedModel):
        return f"{name}-{located.fingerprint[8:16]}"
    path = located.path if isinstance(located, GgufModel) else located.folder
    return f"{name}-{hashlib.blake2b(os.fsencode(path.absolute()), digest_size=4).hexdigest()}"


def _load(entry: Path, fingerprint: str, progress: Progress) -> ConvertedModel | None:
    """Return the conversion; None if there is none, or one of files that have changed since."""
    try:
        model = ConvertedModel.load(entry) if entry.is_dir() else None
    except ModelCorruptError as error:
        progress.tell(f"the model is converted anew: {error}")
        return None
    return model if model and model.fingerprint == fingerprint else None


@contextmanager
def _draft_folder(entry: Path) -> Iterator[Path]:
    draft = entry.with_name(f".{entry.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
