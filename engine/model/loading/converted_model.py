"""A model on disk for our forward passes: quantized once, mapped at each start.

Each start compares sizes, times and heads of the files with the manifest. It reads and hashes the
files only if times differ, as after a copy of the folder.
"""

import hashlib
import json
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any, Self

import msgspec
import torch

from engine.errors import ModelCorruptError
from engine.model.loading.catalog import LocatedModel, ModelFiles
from engine.model.loading.folder_model import opened, read_json
from engine.model.loading.packing import FILE_FORMS, PACKERS, pack_own_forms
from engine.model.model_config import ModelConfig
from engine.model.tokenizer import Tokenizer, TokenizerDocument
from engine.progress import Progress, shown
from kernels.weight import Weight

_WEIGHTS_FILE = "model.safetensors"
_CONFIG_FILE = "config.json"
_MANIFEST = "manifest.json"
_TOKENIZER_FILE = "tokenizer.json"  # without special tokens, which cost half a second per start
SPECIALS_FILE = "marks.json"
_FILES = (_WEIGHTS_FILE, _CONFIG_FILE, _TOKENIZER_FILE, SPECIALS_FILE)
_FLOAT_BYTES = 4
_HEAD_BYTES = 2**21  # more than `SafetensorsWriter` reserves for its header
_HEADER_ROOM = 1 << 20
_ALIGNMENT = 64  # bytes; aligns mapped tensors for vector instructions
PADDING = "_padding."  # name prefix of tensors that only pad

_TYPES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
}


class SafetensorsWriter:
    """Appends tensors to a new file, so that a model larger than memory can be converted.

    The header comes first but is known last: the writer reserves room, and `close` fills it.
    Format: https://github.com/huggingface/safetensors
    """

    def __init__(self, file: BufferedWriter) -> None:
        self._file = file
        self._entries: dict[str, Any] = {}
        self._end = 0
        file.write(bytes(8 + _HEADER_ROOM))

    def write(self, name: str, tensor: torch.Tensor) -> None:
        """Append a tensor under a new name."""
        if gap := -self._end % _ALIGNMENT:
            self._append(f"{PADDING}{self._end}", torch.zeros(gap, dtype=torch.uint8))
        self._append(name, tensor)

    def _append(self, name: str, tensor: torch.Tensor) -> None:
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        self._file.write(flat.numpy().data)
        start, self._end = self._end, self._end + flat.numel()
        self._entries[name] = {
            "dtype": _TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, self._end],
        }

    def close(self) -> None:
        """Write the header. Raises ValueError if there are too many tensors for its room."""
        header = json.dumps(self._entries, separators=(",", ":")).encode()
        if len(header) > _HEADER_ROOM:
            raise ValueError(f"a header of {len(header):,} bytes does not fit its room")
        self._file.seek(0)
        self._file.write(_HEADER_ROOM.to_bytes(8, "little"))
        self._file.write(header.ljust(_HEADER_ROOM))


class _Stamp(msgspec.Struct):
    """`head` is the hash of a file's beginning, where weights have their places and shapes."""

    bytes: int
    mtime_ns: int
    head: str
    blake2b: str = ""

    @classmethod
    def of(cls, path: Path) -> Self:
        stat = path.stat()
        with path.open("rb") as file:
            head = hashlib.blake2b(file.read(_HEAD_BYTES)).hexdigest()
        return cls(stat.st_size, stat.st_mtime_ns, head)


class _Manifest(msgspec.Struct):
    name: str
    fingerprint: str
    variant: str  # the quantization
    files: dict[str, _Stamp]


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """A model that our forward passes can run, ready to be mapped."""

    folder: Path
    name: str
    fingerprint: str
    quantization: str
    config: ModelConfig

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Check the files and return the model. Raises ModelCorruptError."""
        try:
            manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=_Manifest)
            for file in _FILES:
                _check(folder / file, manifest.files[file])
        except (KeyError, ValueError, OSError, RecursionError) as error:
            raise ModelCorruptError(f"{folder} is no whole converted model: {error}") from error
        config = ModelConfig.from_hugging_face(read_json(folder / _CONFIG_FILE))
        return cls(folder, manifest.name, manifest.fingerprint, manifest.variant, config)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Map the weights. They are read on first access and must not be written."""
        with opened(self.folder / _WEIGHTS_FILE) as stored:
            names = [name for name in stored.keys() if not name.startswith(PADDING)]  # noqa: SIM118 - it is no dictionary
            return {name: stored.get_tensor(name) for name in names}

    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer. Raises ModelCorruptError."""
        return _stored_tokenizer(self.folder)


def convert(
    located: LocatedModel, source: ModelFiles, quantization: str, folder: Path, progress: Progress
) -> None:
    """Convert `source`, the files of `located`, into `folder`; the manifest comes last.

    Only one weight and its packed form are in memory at a time. `quantization` is a key of
    `packing.PACKERS`, or `FILE_FORMS`.
    """
    config = source.config
    (folder / _CONFIG_FILE).write_text(json.dumps(config.to_hugging_face(), indent=1), "utf-8")
    write_tokenizer(source, folder)
    _stored_tokenizer(folder)  # raises before the weights are read, which takes longer

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
        task = f"laying out {located.name} for the GPU, once on this machine"
        tensors = pack_own_forms(config, read, own_form)
    else:
        task = f"converting {located.name} to {quantization}, once on this machine"
        tensors = PACKERS[quantization](config, read)
    total = config.num_parameters * _FLOAT_BYTES
    with (
        shown(progress, task, total),
        (folder / _WEIGHTS_FILE).open("wb") as file,
        torch.inference_mode(),
    ):
        writer = SafetensorsWriter(file)
        for tensor_name, tensor in tensors:
            writer.write(tensor_name, tensor)
        writer.close()
    files = {}
    for name in _FILES:
        files[name] = _Stamp.of(folder / name)
        files[name].blake2b = _sum(folder / name)
    manifest = _Manifest(located.name, located.fingerprint, quantization, files)
    (folder / _MANIFEST).write_bytes(msgspec.json.encode(manifest))


def write_tokenizer(source: ModelFiles, folder: Path) -> None:
    """Write the files that `ConvertedModel.tokenizer` reads."""
    document = TokenizerDocument.read(source.tokenizer_json(), source.end_ids)
    (folder / _TOKENIZER_FILE).write_text(document.plain, "utf-8")
    specials = msgspec.structs.replace(document, plain="")
    (folder / SPECIALS_FILE).write_bytes(msgspec.json.encode(specials))


def _stored_tokenizer(folder: Path) -> Tokenizer:
    try:
        specials = (folder / SPECIALS_FILE).read_bytes()
        document = msgspec.json.decode(specials, type=TokenizerDocument)
        plain = (folder / _TOKENIZER_FILE).read_text("utf-8")
    except (OSError, ValueError, RecursionError) as error:
        raise ModelCorruptError(f"the tokenizer in {folder} cannot be read: {error}") from error
    return Tokenizer(msgspec.structs.replace(document, plain=plain))


def _check(path: Path, known: _Stamp) -> None:
    stamp = _Stamp.of(path)
    if stamp.bytes != known.bytes:
        raise ModelCorruptError(
            f"{path} is truncated or foreign: it has {stamp.bytes:,} bytes, not {known.bytes:,}"
        )
    if stamp.head != known.head:
        raise ModelCorruptError(f"{path} is damaged: it begins in another way")
    if stamp.mtime_ns != known.mtime_ns and _sum(path) != known.blake2b:
        raise ModelCorruptError(f"{path} is damaged: its sum is not the known one")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
