"""A GGUF file (format: ggml's `docs/gguf.md`): metadata, and tensors as float32, one at a time.

We parse the header ourselves: the `gguf` package takes eleven seconds for 150,000 tokens.
"""

import re
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model_names import printable

# Codes of `struct`, by the numbers that GGUF gives its types of metadata.
_SCALARS = dict(enumerate(["B", "b", "H", "h", "I", "i", "f", "?"])) | {10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMS = 4  # of a tensor, as in ggml (GGML_MAX_DIMS)
_MOST_ITEMS = 2**24  # items of an array; vocabularies have far fewer
_FORMER_TYPES = {4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8"}
PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_BLOCK_VALUES = 1 << 22  # values decoded at a time, to bound the decoder's temporary memory


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in its mapped file."""

    shape: tuple[int, ...]  # outermost first
    kind: GGMLQuantizationType
    stored: np.ndarray  # uint8 [rows, bytes per row]


class GgufFile:
    """A mapped GGUF file. If it is split, `path` is the first part, with the others beside it."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises ModelCorruptError if the file is not a complete GGUF file."""
        self.path = path
        first, *others = (_read(part) for part in parts_of(path))
        if first.metadata.get("split.no", 0) != 0:
            raise ModelCorruptError(f"{path} is a part of a split model: name its first part")
        if first.metadata.get("split.count", 1) not in (0, 1 + len(others)):
            raise ModelCorruptError(f"{path} is a part of a split model, under another name")
        self.metadata, self.tensors = first.metadata, first.tensors
        for one in others:
            self.tensors |= one.tensors

    def tensor(self, name: str) -> StoredTensor:
        """Return the tensor `name`, not decoded. Raises ModelCorruptError."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ModelCorruptError(f"{self.path} lacks the tensor {name}")
        return tensor

    def read(self, name: str) -> np.ndarray:
        """Return the tensor `name` as float32 in its full shape. Raises ModelCorruptError."""
        tensor = self.tensor(name)
        width, rows = tensor.shape[-1], len(tensor.stored)
        values = np.empty((rows, width), np.float32)
        step = max(1, _BLOCK_VALUES // width)
        try:
            with np.errstate(all="ignore"):  # a damaged file may contain any numbers
                for row in range(0, rows, step):
                    stored = tensor.stored[row : row + step]
                    values[row : row + step] = dequantize(stored, tensor.kind)
        except NotImplementedError as error:
            raise UnsupportedModelError(
                f"{self.path} cannot be read: {_no_type(name, tensor.kind, tensor.kind.name)}"
            ) from error
        return values.reshape(tensor.shape)


def parts_of(path: Path) -> list[Path]:
    """Return all files of a model; there are several if `path` ends in `-00001-of-0000N.gguf`."""
    split = PART.search(path.name)
    if split is None or int(split[1]) != 1:
        return [path]
    stem = path.name[: split.start()]
    return [
        path.with_name(f"{stem}-{number:05}-of-{split[2]}.gguf")
        for number in range(1, int(split[2]) + 1)
    ]


def _read(path: Path) -> "_Header":
    try:
        return _Header(np.memmap(path, np.uint8, "r"))
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ModelCorruptError(f"{path} is no whole GGUF file: {error}") from error
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{path} cannot be read: {error}") from error
    except OSError as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error


class _Header:
    def __init__(self, content: np.memmap[Any, np.dtype[np.uint8]]) -> None:
        self._view = content.data
        self._at = 0
        if bytes(self._take(4)) != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        version, num_tensors, num_entries = self._unpack("IQQ")
        if version not in (2, 3):
            raise ValueError(f"version {version} is neither 2 nor 3")
        self.metadata: dict[str, Any] = {}
        for _ in range(num_entries):
            key = self._string()
            (kind,) = self._unpack("I")
            self.metadata[key] = self._value(kind)
        infos = [self._tensor_info() for _ in range(num_tensors)]
        alignment = int(self.metadata.get("general.alignment", 32))
        begin = -(-self._at // alignment) * alignment
        self.tensors: dict[str, StoredTensor] = {}
        for name, shape, kind, offset in infos:
            block_len, block_bytes = GGML_QUANT_SIZES[kind]
            row = shape[-1] // block_len * block_bytes
            start, end = begin + offset, begin + offset + prod(shape[:-1]) * row
            if end > len(content):
                held = f"{len(content):,} bytes of at least {end:,}"
                raise ValueError(f"it is truncated and holds {held}")
            self.tensors[name] = StoredTensor(shape, kind, content[start:end].reshape(-1, row))
        if len(self.tensors) < num_tensors:
            raise ValueError("several of its tensors have one name")

    def _take(self, count: int) -> memoryview:
        piece = self._view[self._at : self._at + count]
        if len(piece) < count:
            raise ValueError(f"it ends within its header, at byte {len(self._view):,}")
        self._at += count
        return piece

    def _unpack(self, codes: str) -> tuple[Any, ...]:
        # Field by field: a joint format would pad between them.
        return tuple(
            struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0] for code in codes
        )

    def _string(self) -> str:
        """Invalid UTF-8 becomes lone surrogates, as most of the metadata is not needed."""
        (length,) = self._unpack("Q")
        return str(self._take(length), "utf-8", "surrogateescape")

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - metadata is of any type
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise ValueError(f"unknown metadata type {kind}")
        return self._unpack(_SCALARS[kind])[0]

    def _array(self) -> list[Any]:
        kind, length = self._unpack("IQ")
        if length > _MOST_ITEMS:
            raise ValueError(f"an array in its metadata has {length:,} items")
        if kind in _SCALARS:
            item = np.dtype("<" + _SCALARS[kind])
            return list(np.frombuffer(self._take(length * item.itemsize), item).tolist())
        return [self._value(kind) for _ in range(length)]

    def _tensor_info(self) -> tuple[str, tuple[int, ...], GGMLQuantizationType, int]:
        name = printable(self._string())
        (num_dims,) = self._unpack("I")
        if num_dims > _MAX_DIMS:
            raise ValueError(f"tensor {name} has {num_dims} dimensions")
        shape = tuple(reversed(self._unpack("Q" * num_dims)))  # stored innermost first
        kind_id, offset = self._unpack("IQ")
        if kind_id not in iter(GGMLQuantizationType):
            raise UnsupportedModelError(_no_type(name, kind_id, _FORMER_TYPES.get(kind_id)))
        kind = GGMLQuantizationType(kind_id)
        if not shape or shape[-1] % GGML_QUANT_SIZES[kind][0] or min(shape) < 1:
            raise ValueError(f"tensor {name} of type {kind.name} has the shape {shape}")
        return name, shape, kind, offset


def _no_type(tensor: str, kind_id: int, kind: str | None) -> str:
    called = f"{kind_id} ({kind})" if kind else str(kind_id)
    return (
        f"its tensor {tensor} is of the quantization type {called}, which is not known here; name a "
        "file of another quantization"
    )
