"""One GGUF file: its metadata, and its tensors as float32, one at a time.

The container is read here, as the reader of the `gguf` package takes eleven seconds for a
vocabulary of 150,000 strings; the quantised blocks are decoded by that package.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import struct
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from engine.errors import ModelCorruptError, UnsupportedModelError

_SCALARS = dict(enumerate(["B", "b", "H", "h", "I", "i", "f", "?"])) | {10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMS = 4
_BLOCK_VALUES = 1 << 22  # decoded at a time: bounds what the decoder allocates besides the result


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies: `shape` outermost first, `start` and `num_bytes` in the file."""

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    start: int
    num_bytes: int


class GgufFile:
    """A mapped GGUF file: `metadata` by key, `tensors` by name."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises ModelCorruptError when the file is no whole GGUF file."""
        self.path = path
        try:
            self._bytes = np.memmap(path, np.uint8, "r")
            header = _Header(self._bytes)
            self.metadata = header.metadata
            self.tensors = header.tensors
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise ModelCorruptError(f"{path} is no whole GGUF file: {error}") from error
        except OSError as error:
            raise ModelCorruptError(f"{path} cannot be read: {error}") from error
        end = max((tensor.start + tensor.num_bytes for tensor in self.tensors.values()), default=0)
        if end > len(self._bytes):
            raise ModelCorruptError(
                f"{path} is truncated: it holds {len(self._bytes):,} bytes of at least {end:,}"
            )

    def tensor(self, name: str) -> StoredTensor:
        """Say where the tensor `name` lies. Raises ModelCorruptError."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ModelCorruptError(f"{self.path} lacks the tensor {name}")
        return tensor

    def stored(self, name: str) -> np.ndarray:
        """Return the bytes of the tensor `name`, a row for each of its rows, which are mapped."""
        tensor = self.tensor(name)
        rows = prod(tensor.shape[:-1])
        return self._bytes[tensor.start : tensor.start + tensor.num_bytes].reshape(rows, -1)

    def read(self, name: str) -> np.ndarray:
        """Return the tensor `name` as float32 in its full shape. Raises ModelCorruptError."""
        tensor, stored = self.tensor(name), self.stored(name)
        width, rows = tensor.shape[-1], len(stored)
        values = np.empty((rows, width), np.float32)
        step = max(1, _BLOCK_VALUES // width)
        for row in range(0, rows, step):
            values[row : row + step] = _decode(stored[row : row + step], tensor.kind)
        return values.reshape(tensor.shape)


def _decode(stored: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
    try:
        with np.errstate(all="ignore"):  # a damaged file may hold any numbers
            values: np.ndarray = dequantize(stored, kind)
    except NotImplementedError as error:
        raise UnsupportedModelError(f"tensors of type {kind.name} cannot be decoded") from error
    return values


class _Header:
    """A cursor that reads the header from its start to its end."""

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
        data_start = -(-self._at // alignment) * alignment
        self.tensors = {info.name: replace(info, start=data_start + info.start) for info in infos}

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
        (length,) = self._unpack("Q")
        return str(self._take(length), "utf-8")

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
        if kind in _SCALARS:
            item = np.dtype("<" + _SCALARS[kind])
            return list(np.frombuffer(self._take(length * item.itemsize), item).tolist())
        return [self._value(kind) for _ in range(length)]

    def _tensor_info(self) -> StoredTensor:
        name = self._string()
        (num_dims,) = self._unpack("I")
        if num_dims > _MAX_DIMS:
            raise ValueError(f"tensor {name} has {num_dims} dimensions")
        shape = tuple(reversed(self._unpack("Q" * num_dims)))  # stored innermost first
        kind_id, offset = self._unpack("IQ")
        kind = GGMLQuantizationType(kind_id)
        block_len, block_bytes = GGML_QUANT_SIZES[kind]
        if not shape or shape[-1] % block_len or min(shape) < 1:
            raise ValueError(f"tensor {name} of type {kind.name} has the shape {shape}")
        return StoredTensor(name, shape, kind, offset, prod(shape) // block_len * block_bytes)
