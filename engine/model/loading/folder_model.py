"""A model in a Hugging Face folder: config.json, tokenizer.json and safetensors files."""

import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.chat_files import folder_chat, read_json, with_chat
from engine.model.loading.int4_checkpoint import PARTS, Int4Matrix, unpacked_shape
from engine.model.model_config import OWN_ARCHITECTURES, ModelConfig, is_int4
from engine.model.tokenizer import TokenizerDocument
from engine.model_names import printable

if TYPE_CHECKING:
    from kernels.weight import Weight

_DTYPES = ("F64", "F32", "F16", "BF16")
_SAMPLE = 1 << 20  # bytes at either end of a file, which stand for all of it


@dataclass(frozen=True)
class FolderModel:
    """A model folder, read on access. Each property raises ModelCorruptError."""

    folder: Path
    name: str

    @property
    def fingerprint(self) -> str:
        """Hash the weights and all that describes them."""
        kinds = ("*.jinja", "*.json", "*.safetensors")
        return fingerprint_of(sorted(path for kind in kinds for path in self.folder.glob(kind)))

    @cached_property
    def _content(self) -> dict[str, Any]:
        return read_json(self.folder / "config.json")

    @property
    def lack(self) -> str:
        """Say why our own forward pass cannot run the model; empty if it can."""
        names = self._content.get("architectures")
        if not isinstance(names, list) or not names:
            raise ModelCorruptError(f"{self.folder / 'config.json'} names no architecture")
        if (architecture := printable(str(names[0]))) not in OWN_ARCHITECTURES:
            return f"is a {architecture}"
        return f"has {', '.join(self.config.deviations)}" if self.config.deviations else ""

    @cached_property
    def config(self) -> ModelConfig:
        """Return the model's shape."""
        return ModelConfig.from_hugging_face(self._content)

    def tokenizer_document(self) -> TokenizerDocument:
        """Read tokenizer.json. Raises UnsupportedModelError if it is missing."""
        ends: list[object] = []
        for name in ("config.json", "generation_config.json"):
            path = self.folder / name
            value = read_json(path).get("eos_token_id") if path.exists() else None
            ends += value if isinstance(value, list) else [value]
        try:
            text = (self.folder / "tokenizer.json").read_text("utf-8")
        except FileNotFoundError as error:
            raise UnsupportedModelError(
                f"{self.folder} holds no tokenizer.json; transformers writes one with "
                "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
            ) from error
        document = TokenizerDocument.read(text, tuple(one for one in ends if type(one) is int))
        return with_chat(document, *folder_chat(self.folder))

    def read(self, name: str) -> np.ndarray:
        """Read one weight into a new float32 array."""
        if (matrix := self._int4_matrix(name)) is not None:
            return matrix.dense()
        return self._stored(name).astype(np.float32)

    @property
    def has_own_forms(self) -> bool:
        """Whether a GPU can read matrices in the file's form."""
        return bool(self._quantization)

    def own_form(self, name: str) -> "Weight | None":
        """Return a matrix of GPTQ or AWQ in groups of 128; None for others."""
        matrix = self._int4_matrix(name)
        return None if matrix is None else matrix.own_form()

    def has(self, name: str) -> bool:
        """Whether the model has this weight."""
        return name in self._file_of

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return a weight's shape without reading it. Raises ModelCorruptError."""
        packed = self._packed(name)
        part = self._file(packed or name).tensors.get_slice(packed or name)
        shape, dtype = tuple(part.get_shape()), part.get_dtype()
        if dtype not in (("I32",) if packed else _DTYPES):
            raise ModelCorruptError(
                f"the tensor {name} of {self.folder} is of the type {dtype}, which is not read"
            )
        if not packed:
            return shape
        return unpacked_shape(self._quantization, shape)

    def _packed(self, name: str) -> str | None:
        """Return the name of a matrix's four-bit codes; None if it is not quantized."""
        packed = f"{name.removesuffix('.weight')}.qweight"
        return packed if self._quantization and packed in self._file_of else None

    def _file(self, name: str) -> "_OpenFile":
        if name not in self._file_of:
            raise ModelCorruptError(f"{self.folder} lacks the tensor {name}")
        return self._file_of[name]

    def _stored(self, name: str) -> np.ndarray:
        path, tensors = self._file(name)
        if tensors.get_slice(name).get_dtype() == "BF16":
            return _brain_floats(path, name)
        tensor: np.ndarray = tensors.get_tensor(name)
        return tensor

    def _int4_matrix(self, name: str) -> Int4Matrix | None:
        if self._packed(name) is None:
            return None
        names = {part: f"{name.removesuffix('.weight')}.{part}" for part in PARTS}
        parts = {part: self._stored(own) for part, own in names.items() if own in self._file_of}
        try:
            return Int4Matrix.unpack(self._quantization, parts)
        except (LookupError, ValueError) as error:
            raise ModelCorruptError(f"{name} of {self.folder} is garbled: {error}") from error

    @cached_property
    def _quantization(self) -> dict[str, Any]:
        said = self._content.get("quantization_config")
        return said if isinstance(said, dict) and is_int4(said) else {}

    @cached_property
    def _file_of(self) -> "dict[str, _OpenFile]":
        paths = sorted(self.folder.glob("*.safetensors"))
        if not paths:
            raise UnsupportedModelError(f"{self.folder} holds no .safetensors file")
        found: dict[str, _OpenFile] = {}
        for path in paths:
            try:
                file = _OpenFile(path, safe_open(path, framework="np"))
            except (SafetensorError, OSError) as error:
                raise ModelCorruptError(f"{path} cannot be read: {error}") from error
            found |= dict.fromkeys(file.tensors.keys(), file)
        return found


class _OpenFile(NamedTuple):
    path: Path
    tensors: Any  # safetensors has no types


def _brain_floats(path: Path, name: str) -> np.ndarray:
    """Read a bfloat16 tensor as float32, whose upper halves it has: numpy knows no such type."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))[name]
    start = 8 + size + header["data_offsets"][0]
    halves = np.memmap(path, "<u2", "r", start, tuple(header["shape"]))
    return (halves.astype(np.uint32) << 16).view(np.float32)


def fingerprint_of(files: Iterable[Path]) -> str:
    """Hash names, sizes, times and, for speed, only the ends of files. Raises ModelCorruptError."""
    total = hashlib.blake2b()
    for path in files:
        try:
            with path.open("rb") as file:
                stat = path.stat()
                total.update(f"{path.name!r} {stat.st_size} {stat.st_mtime_ns}".encode())
                total.update(file.read(_SAMPLE))
                file.seek(max(0, stat.st_size - _SAMPLE))
                total.update(file.read(_SAMPLE))
        except OSError as error:
            raise ModelCorruptError(f"{path} cannot be read: {error}") from error
    return total.hexdigest()
