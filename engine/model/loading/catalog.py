"""Find a model by a user's name for it: an alias, a hub id, a folder or a GGUF file."""

from pathlib import Path

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel
from engine.model.loading.hub import hub_folder, hub_gguf
from engine.model_names import (
    HUB_ALIASES,
    holds_gguf,
    kind_of,
    path_of,
    pinned,
    printable,
    why_unknown,
)
from engine.offline_parts import OFFLINE_MODELS, EmbeddedModel, find_parts, join_parts
from engine.progress import Progress

# Each has a name for reports, and a hexadecimal fingerprint that changes when its files do.
ModelFiles = GgufModel | FolderModel
LocatedModel = EmbeddedModel | ModelFiles


def locate(spec: str, progress: Progress | None = None) -> LocatedModel:
    """Find the model that `spec` names; a hub id may be downloaded. Raises ModelNotFoundError."""
    progress = progress or Progress()
    kind = kind_of(spec)
    if kind == "embedded":
        return OFFLINE_MODELS[spec]
    if kind == "path":
        return _at(path_of(spec))
    if kind in ("auto", "unknown"):
        raise ModelNotFoundError(why_unknown(spec))
    repository = HUB_ALIASES.get(spec, spec)
    if holds_gguf(repository):
        return GgufModel(hub_gguf(repository, progress))
    try:
        return FolderModel(hub_folder(repository, progress), pinned(repository)[0])
    except ModelNotFoundError as error:
        if not Path(repository).is_dir():
            raise
        hint = f"the folder of that name is written ./{repository}"
        raise ModelNotFoundError(f"{error}; {hint}") from error


def on_disk(located: LocatedModel, scratch: Path, progress: Progress) -> ModelFiles:
    """Join an embedded model's parts in `scratch`. Raises ModelNotFoundError, ModelCorruptError."""
    if not isinstance(located, EmbeddedModel):
        return located
    parts = find_parts(located)
    joined = scratch / "joined.gguf"
    with joined.open("wb") as target:
        join_parts(located, parts, target, progress)
    return GgufModel(joined)


def _at(path: Path) -> ModelFiles:
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelNotFoundError(
                f"the folder {path} holds no config.json; a model's folder has config.json, "
                "tokenizer.json and .safetensors files"
            )
        return FolderModel(path, printable(path.resolve().name))
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {path}")
    if path.suffix != ".gguf":
        raise ModelNotFoundError(f"{path} is no .gguf file; a model is a folder or a .gguf file")
    return GgufModel(path)


def check_source(source: ModelFiles) -> None:
    """Raise ModelCorruptError for a missing tensor or wrong shape; compiled code trusts sizes."""
    config = source.config
    for name, shape in config.shapes():
        if (found := source.shape_of(name)) != shape:
            raise ModelCorruptError(
                f"{source.name} cannot be used: its tensor {name} has the shape {_shown(found)}, and "
                f"its configuration asks for {_shown(shape)}"
            )
    if source.has(f"model.layers.{config.num_layers}.input_layernorm.weight"):
        raise ModelCorruptError(
            f"{source.name} cannot be used: it has more layers than the {config.num_layers} of its "
            "configuration"
        )


def _shown(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "of a single number"
