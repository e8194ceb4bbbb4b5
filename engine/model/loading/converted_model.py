"""A model on disk for our forward passes: quantized once, mapped at each start."""

import hashlib
import mmap
import os
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

import msgspec
import numpy as np

from engine.errors import ModelCorruptError
from engine.model.model_config import ModelConfig
from engine.model.tokenizer import TokenizerDocument
from kernels.cpu_forward import layout

if TYPE_CHECKING:
    import torch

FILE_FORMS = "file"  # the quantization of matrices as a model's file has them
MANIFEST = "manifest.json"
WEIGHTS = "weights.bin"
INT8 = "int8"  # the quantization of the CPU's own forward pass
TOKENIZER = "tokenizer.json"  # without special tokens, which cost half a second per start


class TensorPlace(msgspec.Struct, frozen=True):
    """Where a tensor lies among the weights."""

    dtype: str
    shape: tuple[int, ...]
    start: int  # in bytes

    def within(self, weights: Any, dtype: Any) -> Any:  # noqa: ANN401 - of numpy or of torch
        """Return the array or tensor, as the weights are; `dtype` is its type's or torch's own."""
        end = self.start + prod(self.shape) * dtype.itemsize
        return weights[self.start : end].view(dtype).reshape(self.shape)


class KnownFile(msgspec.Struct, frozen=True):
    """What is known of a file."""

    bytes: int
    mtime_ns: int
    blake2b: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read the whole file."""
        stat = path.stat()
        with path.open("rb") as file:
            total = hashlib.file_digest(file, "blake2b")
        return cls(stat.st_size, stat.st_mtime_ns, total.hexdigest())

    def check(self, path: Path) -> None:
        """Raise ModelCorruptError if the file is another one; cheap where its time is the same."""
        stat = path.stat()
        if stat.st_size != self.bytes:
            raise ModelCorruptError(
                f"{path} is truncated or foreign: it has {stat.st_size:,} bytes, not {self.bytes:,}"
            )
        # A start hashes only files whose time differs, as after a copy of the folder.
        if stat.st_mtime_ns != self.mtime_ns and self.of(path).blake2b != self.blake2b:
            raise ModelCorruptError(f"{path} is damaged: its sum is not the known one")


class RowsOnDisk:
    """A table in a file, of which steps want a row here and there.

    Were it mapped, each row would bring 64 KB of its neighbours into this process's memory.
    """

    def __init__(self, path: Path, place: TensorPlace) -> None:
        self._path, self._file = path, os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        finalize(self, os.close, self._file)
        self._start, self._shape, self._dtype = place.start, place.shape, np.dtype(place.dtype)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of these numbers. Raises ModelCorruptError if the file lacks them."""
        size = prod(self._shape[1:]) * self._dtype.itemsize
        starts = (self._start + size * row for row in rows.tolist())
        found = b"".join(os.pread(self._file, size, start) for start in starts)
        if len(found) != len(rows) * size:
            raise ModelCorruptError(
                f"{self._path} became shorter; `foregram stop` lets it be mended"
            )
        return np.frombuffer(found, self._dtype).reshape(len(rows), *self._shape[1:])


class ConvertedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model that our forward passes can run. The manifest holds its fields."""

    name: str
    fingerprint: str
    quantization: str
    config: ModelConfig
    document: TokenizerDocument  # without the tokenizer's text
    places: dict[str, TensorPlace]
    files: dict[str, KnownFile]
    layout: str = ""  # of int8 weights, which lie as one kind of processor wants them
    blake2b: str = ""  # sum of the manifest without it; compiled code trusts the shapes
    folder: Path = Path()  # known when it is loaded

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Check the files and return the model. Raises ModelCorruptError."""
        path = folder / MANIFEST
        try:
            model = msgspec.json.decode(path.read_bytes(), type=cls)
            if model != model.summed():
                raise ModelCorruptError(f"{path} is damaged: its sum is not the known one")
            for name, stamp in model.files.items():
                stamp.check(folder / name)
            if model.layout != layout_of(model.quantization):
                raise ModelCorruptError(f"{folder} was packed for another processor")
        except (ValueError, OSError, RecursionError) as error:
            raise ModelCorruptError(f"{folder} is no whole converted model: {error}") from error
        return msgspec.structs.replace(model, folder=folder)

    def summed(self) -> Self:
        """Return the model with the sum that its manifest should have."""
        content = msgspec.json.encode(msgspec.structs.replace(self, blake2b=""))
        return msgspec.structs.replace(self, blake2b=hashlib.blake2b(content).hexdigest())

    def arrays(self) -> dict[str, np.ndarray]:
        """Map the weights for reading, shared with other processes. Read on first access."""
        path = self.folder / WEIGHTS
        try:
            with path.open("rb") as file:
                weights = np.frombuffer(
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8
                )
        except (OSError, ValueError) as error:
            raise ModelCorruptError(f"{path} cannot be read: {error}") from error
        self.files[WEIGHTS].check(path)  # another process may have replaced the folder
        return {name: one.within(weights, np.dtype(one.dtype)) for name, one in self.places.items()}

    def rows(self, name: str) -> RowsOnDisk:
        """Return a table to read rows of. Raises ModelCorruptError."""
        try:
            return RowsOnDisk(self.folder / WEIGHTS, self.places[name])
        except OSError as error:
            raise ModelCorruptError(f"{self.folder / WEIGHTS} cannot be read: {error}") from error

    def tensors(self) -> "dict[str, torch.Tensor]":
        """Map the weights for torch, as copies if they are written."""
        import torch  # noqa: PLC0415 - hosts without a GPU do not need it

        path, size = str(self.folder / WEIGHTS), self.files[WEIGHTS].bytes
        try:
            weights = torch.from_file(path, size=size, dtype=torch.uint8)
        except RuntimeError as error:
            raise ModelCorruptError(f"{path} cannot be read: {error}") from error
        self.files[WEIGHTS].check(Path(path))  # another process may have replaced the folder
        return {
            name: one.within(weights, getattr(torch, one.dtype))
            for name, one in self.places.items()
        }

    def tokenizer_document(self) -> TokenizerDocument:
        """Return the tokenizer with its text. Raises ModelCorruptError."""
        try:
            text = (self.folder / TOKENIZER).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise ModelCorruptError(f"{self.folder} holds no tokenizer: {error}") from error
        return msgspec.structs.replace(self.document, plain=text)


def layout_of(quantization: str) -> str:
    """Return the layout of weights that this machine packs; empty where it is the same on all."""
    return layout() if quantization == INT8 else ""
