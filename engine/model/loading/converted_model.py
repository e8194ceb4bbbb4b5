"""A model on disk for our forward passes: quantized once, mapped at each start."""

import hashlib
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import BinaryIO, Self

import msgspec
import torch

from engine.errors import ModelCorruptError
from engine.model.loading.catalog import ModelFiles
from engine.model.loading.packing import FILE_FORMS, PACKERS, NamedTensor, pack_own_forms
from engine.model.model_config import ModelConfig
from engine.model.tokenizer import Tokenizer, TokenizerDocument
from engine.progress import Progress, shown
from kernels.weight import Weight

_MANIFEST = "manifest.json"
_WEIGHTS = "weights.bin"
_TOKENIZER = "tokenizer.json"  # without special tokens, which cost half a second per start
_FLOAT_BYTES = 4  # of a weight in float32, in which progress is counted
_ALIGNMENT = 64  # bytes; aligns mapped tensors for vector instructions


class _Place(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    start: int  # in bytes, among the weights

    def within(self, weights: torch.Tensor) -> torch.Tensor:
        dtype: torch.dtype = getattr(torch, self.dtype)
        end = self.start + prod(self.shape) * dtype.itemsize
        return weights[self.start : end].view(dtype).view(self.shape)


class _Stamp(msgspec.Struct, frozen=True):
    bytes: int
    mtime_ns: int
    blake2b: str

    @classmethod
    def of(cls, path: Path) -> Self:
        stat = path.stat()
        with path.open("rb") as file:
            total = hashlib.file_digest(file, "blake2b")
        return cls(stat.st_size, stat.st_mtime_ns, total.hexdigest())

    def check(self, path: Path) -> None:
        stat = path.stat()
        if stat.st_size != self.bytes:
            raise ModelCorruptError(
                f"{path} is truncated or foreign: it has {stat.st_size:,} bytes, not {self.bytes:,}"
            )
        # A start hashes only files whose time differs, as after a copy of the folder.
        if stat.st_mtime_ns != self.mtime_ns and self.of(path).blake2b != self.blake2b:
            raise ModelCorruptError(f"{path} is damaged: its sum is not the known one")


class ConvertedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model that our forward passes can run. The manifest holds its fields."""

    name: str
    fingerprint: str
    quantization: str
    config: ModelConfig
    document: TokenizerDocument  # without the tokenizer's text
    places: dict[str, _Place]
    files: dict[str, _Stamp]
    blake2b: str = ""  # sum of the manifest without it; compiled code trusts the shapes
    folder: Path = Path()  # known when it is loaded

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Check the files and return the model. Raises ModelCorruptError."""
        path = folder / _MANIFEST
        try:
            model = msgspec.json.decode(path.read_bytes(), type=cls)
            if model != model.summed():
                raise ModelCorruptError(f"{path} is damaged: its sum is not the known one")
            for name, stamp in model.files.items():
                stamp.check(folder / name)
        except (ValueError, OSError, RecursionError) as error:
            raise ModelCorruptError(f"{folder} is no whole converted model: {error}") from error
        return msgspec.structs.replace(model, folder=folder)

    def summed(self) -> Self:
        """Return the model with the sum that its manifest should have."""
        content = msgspec.json.encode(msgspec.structs.replace(self, blake2b=""))
        return msgspec.structs.replace(self, blake2b=hashlib.blake2b(content).hexdigest())

    def tensors(self) -> dict[str, torch.Tensor]:
        """Map the weights. They are read on first access and must not be written."""
        path, size = str(self.folder / _WEIGHTS), self.files[_WEIGHTS].bytes
        try:
            weights = torch.from_file(path, size=size, dtype=torch.uint8)
        except RuntimeError as error:
            raise ModelCorruptError(f"{path} cannot be read: {error}") from error
        self.files[_WEIGHTS].check(Path(path))  # another process may have replaced the folder
        return {name: place.within(weights) for name, place in self.places.items()}

    def tokenizer_document(self) -> TokenizerDocument:
        """Return the tokenizer with its text. Raises ModelCorruptError."""
        try:
            text = (self.folder / _TOKENIZER).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise ModelCorruptError(f"{self.folder} holds no tokenizer: {error}") from error
        return msgspec.structs.replace(self.document, plain=text)


def convert(
    source: ModelFiles,
    name: str,
    fingerprint: str,
    quantization: str,  # a key of `PACKERS`, or `FILE_FORMS`
    folder: Path,
    progress: Progress,
) -> None:
    """Convert `source` into `folder`, one weight in memory at a time; the manifest comes last."""
    config = source.config
    document = source.tokenizer_document()
    Tokenizer(document)  # raises before the weights are read, which takes longer
    (folder / _TOKENIZER).write_text(document.plain, "utf-8")

    def read(tensor_name: str) -> torch.Tensor:
        tensor = source.read(tensor_name)
        progress.advance(tensor.numel() * _FLOAT_BYTES)
        return tensor

    def own_form(tensor_name: str) -> Weight | None:
        weight = source.own_form(tensor_name)
        if weight is not None:
            progress.advance(weight.num_outputs * weight.num_inputs * _FLOAT_BYTES)
        return weight

    if quantization == FILE_FORMS:
        task = f"laying out {name} for the GPU, once on this machine"
        tensors = pack_own_forms(config, read, own_form)
    else:
        task = f"converting {name} to {quantization}, once on this machine"
        tensors = PACKERS[quantization](config, read)
    total = config.num_parameters * _FLOAT_BYTES
    with shown(progress, task, total), (folder / _WEIGHTS).open("wb") as file:
        places = _write(tensors, file)
    files = {file: _Stamp.of(folder / file) for file in (_WEIGHTS, _TOKENIZER)}
    document = msgspec.structs.replace(document, plain="")
    model = ConvertedModel(name, fingerprint, quantization, config, document, places, files)
    (folder / _MANIFEST).write_bytes(msgspec.json.encode(model.summed()))


@torch.inference_mode()
def _write(tensors: Iterable[NamedTensor], file: BinaryIO) -> dict[str, _Place]:
    places = {}
    for name, tensor in tensors:
        file.write(bytes(-file.tell() % _ALIGNMENT))
        dtype = str(tensor.dtype).removeprefix("torch.")
        places[name] = _Place(dtype, tuple(tensor.shape), file.tell())
        file.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return places
