"""A model in a Hugging Face folder: config.json, tokenizer.json and safetensors files."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.int4_checkpoint import PARTS, Int4Matrix
from engine.model.model_config import OWN_ARCHITECTURES, ModelConfig, is_int4
from engine.model.tokenizer import Tokenizer
from kernels.weight import Weight


@dataclass(frozen=True)
class FolderModel:
    """Nothing is read before it is asked for; each property raises ModelCorruptError.

    A snapshot of the hub is such a folder too. transformers runs what our own forward cannot.
    """

    folder: Path
    name: str

    @property
    def fingerprint(self) -> str:
        """From names, sizes and times of the files, and the text of the small ones."""
        total = hashlib.blake2b()
        try:
            for path in sorted(self.folder.glob("*.safetensors")):
                stat = path.stat()
                total.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
            for path in sorted(self.folder.glob("*.json")):
                total.update(path.name.encode() + path.read_bytes())
        except OSError as error:
            raise ModelCorruptError(f"{self.folder} cannot be read: {error}") from error
        return total.hexdigest()

    @property
    def architecture(self) -> str:
        """The class that the configuration names."""
        names = read_json(self.folder / "config.json").get("architectures")
        if not isinstance(names, list) or not names:
            raise ModelCorruptError(f"{self.folder / 'config.json'} names no architecture")
        return str(names[0])

    @property
    def is_plain(self) -> bool:
        """True where our own forward pass can run the model."""
        return self.architecture in OWN_ARCHITECTURES and not self.config.deviations

    @cached_property
    def config(self) -> ModelConfig:
        """The model's shape."""
        return ModelConfig.from_hugging_face(read_json(self.folder / "config.json"))

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Token ids that the configuration and the generation settings call ends of text."""
        ends: list[int] = []
        for name in ("config.json", "generation_config.json"):
            path = self.folder / name
            value = read_json(path).get("eos_token_id") if path.exists() else None
            ends += value if isinstance(value, list) else [value] if value is not None else []
        return tuple(dict.fromkeys(ends))

    def tokenizer_json(self) -> str:
        """Return the content of tokenizer.json. Raises UnsupportedModelError without one."""
        try:
            return (self.folder / "tokenizer.json").read_text("utf-8")
        except FileNotFoundError as error:
            raise UnsupportedModelError(
                f"{self.folder} holds no tokenizer.json; transformers writes one with "
                "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
            ) from error

    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer. Raises UnsupportedModelError without tokenizer.json."""
        return Tokenizer.from_json(self.tokenizer_json(), self.end_ids)

    def read(self, name: str) -> torch.Tensor:
        """Read one weight from the file that holds it: float32, a tensor of its own."""
        if (matrix := self._int4_matrix(name)) is not None:
            return matrix.dense()
        return self._stored(name).to(torch.float32, copy=True)

    @property
    def has_own_forms(self) -> bool:
        """Whether a GPU can read matrices as they are held."""
        return self._quantization is not None

    def own_form(self, name: str) -> Weight | None:
        """One matrix of GPTQ or AWQ in groups of 128; None for others."""
        matrix = self._int4_matrix(name)
        return None if matrix is None else matrix.own_form()

    def _stored(self, name: str) -> torch.Tensor:
        if name not in self._file_of:
            raise ModelCorruptError(f"{self.folder} lacks the tensor {name}")
        with opened(self._file_of[name]) as stored:
            tensor: torch.Tensor = stored.get_tensor(name)
            return tensor

    def _int4_matrix(self, name: str) -> Int4Matrix | None:
        module = name.removesuffix(".weight")
        if self._quantization is None or f"{module}.{PARTS[0]}" not in self._file_of:
            return None
        names = {part: f"{module}.{part}" for part in PARTS}
        parts = {part: self._stored(own) for part, own in names.items() if own in self._file_of}
        try:
            return Int4Matrix.unpack(self._quantization, parts)
        except (KeyError, RuntimeError, IndexError) as error:
            raise ModelCorruptError(f"{name} of {self.folder} is garbled: {error}") from error

    @cached_property
    def _quantization(self) -> dict[str, Any] | None:
        """What the configuration says of matrices in four bits."""
        said = read_json(self.folder / "config.json").get("quantization_config")
        return said if isinstance(said, dict) and is_int4(said) else None

    @cached_property
    def _file_of(self) -> dict[str, Path]:
        paths = sorted(self.folder.glob("*.safetensors"))
        if not paths:
            raise UnsupportedModelError(f"{self.folder} holds no .safetensors file")
        return {name: path for path in paths for name in _names(path)}


def _names(path: Path) -> list[str]:
    with opened(path) as stored:
        return list(stored.keys())


def opened(path: Path) -> safe_open:
    """Map a safetensors file. Raises ModelCorruptError."""
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Return an object that a file holds. Raises ModelCorruptError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelCorruptError(f"{path} holds no JSON object")
    return content
