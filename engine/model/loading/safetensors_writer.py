"""Writes a safetensors file tensor by tensor, so that a model larger than memory can be converted.

The header stands first in the file but is known last: room for it is kept, and what is left over
is filled with blanks, as the format allows. Format: https://github.com/huggingface/safetensors
"""

import json
from io import BufferedWriter
from typing import Any

import torch

_HEADER_ROOM = 1 << 20
_ALIGNMENT = 64  # bytes; a mapped tensor then starts where vector instructions like it
PADDING = "_padding."  # first part of the names of tensors that hold no weight

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
    """Appends tensors to a new file; `close` makes it whole."""

    def __init__(self, file: BufferedWriter) -> None:
        self._file = file
        self._entries: dict[str, Any] = {}
        self._end = 0
        file.write(bytes(8 + _HEADER_ROOM))

    def write(self, name: str, tensor: torch.Tensor) -> int:
        """Append a tensor and return its bytes. Raises ValueError for a name written before."""
        if name in self._entries:
            raise ValueError(f"the tensor {name} was written before")
        if gap := -self._end % _ALIGNMENT:
            self._append(f"{PADDING}{self._end}", torch.zeros(gap, dtype=torch.uint8))
        return self._append(name, tensor)

    def _append(self, name: str, tensor: torch.Tensor) -> int:
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        self._file.write(flat.numpy().data)
        start, self._end = self._end, self._end + flat.numel()
        self._entries[name] = {
            "dtype": _TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, self._end],
        }
        return flat.numel()

    def close(self) -> None:
        """Write the header. Raises ValueError when there are too many tensors for its room."""
        header = json.dumps(self._entries, separators=(",", ":")).encode()
        if len(header) > _HEADER_ROOM:
            raise ValueError(f"a header of {len(header):,} bytes does not fit its room")
        self._file.seek(0)
        self._file.write(_HEADER_ROOM.to_bytes(8, "little"))
        self._file.write(header.ljust(_HEADER_ROOM))
