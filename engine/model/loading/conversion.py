"""Writes a model for our forward passes: each weight is read, packed and written in turn."""

# ruff: noqa: PLC0415 - torch is imported to convert to floats, which int8 does not need

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import numpy as np

from engine.model.loading.catalog import ModelFiles
from engine.model.loading.converted_model import (
    FILE_FORMS,
    INT8,
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    ConvertedModel,
    KnownFile,
    TensorPlace,
    layout_of,
)
from engine.model.loading.int8_packing import Read, pack_int8
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress, shown

if TYPE_CHECKING:
    import torch

    from kernels.weight import Weight

    Part = tuple[str, np.ndarray | torch.Tensor]

_FLOAT_BYTES = 4  # of a weight in float32, in which progress is counted
_ALIGNMENT = 64  # bytes; aligns mapped tensors for vector instructions


def convert(
    source: ModelFiles,
    name: str,
    fingerprint: str,
    quantization: str,  # int8, float32, bfloat16 or `FILE_FORMS`
    folder: Path,
    progress: Progress,
) -> None:
    """Convert `source` into `folder`, one weight in memory at a time; the manifest comes last."""
    config = source.config
    document = source.tokenizer_document()
    Tokenizer(document)  # raises before the weights are read, which takes longer
    (folder / TOKENIZER).write_text(document.plain, "utf-8")

    def read(tensor_name: str) -> np.ndarray:
        tensor = source.read(tensor_name)
        progress.advance(tensor.size * _FLOAT_BYTES)
        return tensor

    task = f"converting {name} to {quantization}, once on this machine"
    if quantization == FILE_FORMS:
        task = f"laying out {name} for the GPU, once on this machine"
    parts: Iterable[Part] = (
        pack_int8(config, read)
        if quantization == INT8
        else _floats(source, quantization, read, progress)
    )
    total = config.num_parameters * _FLOAT_BYTES
    with shown(progress, task, total), (folder / WEIGHTS).open("wb") as file:
        places = _write(parts, file)
    files = {file: KnownFile.of(folder / file) for file in (WEIGHTS, TOKENIZER)}
    document = msgspec.structs.replace(document, plain="")
    model = ConvertedModel(
        name,
        fingerprint,
        quantization,
        config,
        document,
        places,
        files,
        layout=layout_of(quantization),
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(model.summed()))


def _floats(
    source: ModelFiles, quantization: str, read: Read, progress: Progress
) -> "Iterator[tuple[str, torch.Tensor]]":
    import torch

    from engine.model.loading.float_packing import pack_own_forms

    def own_form(tensor_name: str) -> "Weight | None":
        weight = source.own_form(tensor_name) if quantization == FILE_FORMS else None
        if weight is not None:
            progress.advance(weight.num_outputs * weight.num_inputs * _FLOAT_BYTES)
        return weight

    def tensor(name: str) -> torch.Tensor:
        return torch.from_numpy(read(name))

    dtype = torch.float32 if quantization == "float32" else torch.bfloat16
    return pack_own_forms(source.config, tensor, own_form, dtype)


def _write(parts: "Iterable[Part]", file: BinaryIO) -> dict[str, TensorPlace]:
    """Write the tensors one after the other; parts of one tensor become one."""
    places = dict[str, TensorPlace]()
    with np.errstate(all="ignore"):  # a damaged file may contain any numbers
        for name, part in parts:
            if place := places.get(name):
                shape = (place.shape[0] + len(part), *place.shape[1:])
                places[name] = msgspec.structs.replace(place, shape=shape)
            else:
                file.write(bytes(-file.tell() % _ALIGNMENT))
                dtype = str(part.dtype).removeprefix("torch.")
                places[name] = TensorPlace(dtype, tuple(part.shape), file.tell())
            file.write(_bytes(part).data)
    return places


def _bytes(part: "np.ndarray | torch.Tensor") -> np.ndarray:
    if isinstance(part, np.ndarray):
        return np.ascontiguousarray(part).reshape(-1).view(np.uint8)
    import torch

    return part.contiguous().reshape(-1).view(torch.uint8).numpy()
