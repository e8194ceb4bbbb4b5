"""Writes a model for our forward passes: each weight is read, packed and written in turn."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch

from engine.model.loading.catalog import ModelFiles
from engine.model.loading.converted_model import (
    FILE_FORMS,
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    ConvertedModel,
    KnownFile,
    TensorPlace,
    layout_of,
)
from engine.model.loading.packing import PACKERS, NamedTensor, pack_own_forms
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress, shown
from kernels.weight import Weight

_FLOAT_BYTES = 4  # of a weight in float32, in which progress is counted
_ALIGNMENT = 64  # bytes; aligns mapped tensors for vector instructions


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
    (folder / TOKENIZER).write_text(document.plain, "utf-8")

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
    with shown(progress, task, total), (folder / WEIGHTS).open("wb") as file:
        places = _write(tensors, file)
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


@torch.inference_mode()
def _write(tensors: Iterable[NamedTensor], file: BinaryIO) -> dict[str, TensorPlace]:
    """Write the tensors one after the other; parts of one tensor become one."""
    places = dict[str, TensorPlace]()
    for name, part in tensors:
        if place := places.get(name):
            shape = (place.shape[0] + len(part), *place.shape[1:])
            places[name] = msgspec.structs.replace(place, shape=shape)
        else:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            dtype = str(part.dtype).removeprefix("torch.")
            places[name] = TensorPlace(dtype, tuple(part.shape), file.tell())
        file.write(part.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return places
