"""A converted model on disk, and the manifest that says whether it is whole.

Each start compares sizes and times of the files with the manifest. Only when they differ, as after
a copy of the folder, are the files read and summed: reading a gigabyte at each start would cost
more than mapping it.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open

from engine.errors import ModelCorruptError
from engine.model.loading.conversion import CONFIG_FILE, MARKS_FILE, TOKENIZER_FILE, WEIGHTS_FILE
from engine.model.loading.folder_model import read_json
from engine.model.loading.safetensors_writer import PADDING
from engine.model.loading.tokenizer_document import TokenizerDocument
from engine.model.model_config import ModelConfig
from engine.model.tokenizer import Tokenizer

_MANIFEST = "manifest.json"
_FILES = (WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE, MARKS_FILE)


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """A model that our own forward can run, ready to be mapped."""

    folder: Path
    name: str
    fingerprint: str
    quantization: str
    config: ModelConfig

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Check the files and return the model. Raises ModelCorruptError."""
        manifest = read_json(folder / _MANIFEST)
        try:
            _check(folder, manifest["files"])
            return cls(
                folder=folder,
                name=manifest["name"],
                fingerprint=manifest["fingerprint"],
                quantization=manifest["variant"],
                config=ModelConfig.from_hugging_face(read_json(folder / CONFIG_FILE)),
            )
        except (KeyError, TypeError, OSError) as error:
            raise ModelCorruptError(f"{folder} is no whole converted model: {error}") from error

    def tensors(self) -> dict[str, torch.Tensor]:
        """Map the weights. They are read when touched and must not be written."""
        path = self.folder / WEIGHTS_FILE
        try:
            with safe_open(path, framework="pt") as stored:
                names = [name for name in stored.keys() if not name.startswith(PADDING)]  # noqa: SIM118 - it is no dictionary
                return {name: stored.get_tensor(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise ModelCorruptError(f"{path} cannot be read: {error}") from error

    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer."""
        marks = read_json(self.folder / MARKS_FILE)
        document = TokenizerDocument(
            plain=(self.folder / TOKENIZER_FILE).read_text("utf-8"),
            marks=marks["marks"],
            start_ids=tuple(marks["start_ids"]),
            byte_level=marks["byte_level"],
        )
        return Tokenizer(document, marks["end_ids"])


def write_manifest(folder: Path, *, name: str, fingerprint: str, quantization: str) -> None:
    """Make a folder of converted files a whole model, as the last act of a conversion."""
    manifest = {
        "name": name,
        "fingerprint": fingerprint,
        "variant": quantization,
        "files": {
            file: _stamp(folder / file) | {"blake2b": _sum(folder / file)} for file in _FILES
        },
    }
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _check(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    for file, known in files.items():
        stamp = _stamp(folder / file)
        if stamp["bytes"] != known["bytes"]:
            raise ModelCorruptError(
                f"{folder / file} is truncated or foreign: it has {stamp['bytes']:,} bytes, not "
                f"{known['bytes']:,}"
            )
        if stamp["mtime_ns"] != known["mtime_ns"] and _sum(folder / file) != known["blake2b"]:
            raise ModelCorruptError(f"{folder / file} is damaged: its sum is not the known one")


def _stamp(path: Path) -> dict[str, Any]:
    stat = path.stat()
    return {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
