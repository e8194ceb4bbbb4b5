"""Turns a model's files into those that a start maps: once, quantized as computing wants it."""

import json
from pathlib import Path

import torch

from engine.errors import ConfigurationError
from engine.model.loading.catalog import FilesModel
from engine.model.loading.packing import QUANTIZATIONS
from engine.model.loading.safetensors_writer import SafetensorsWriter
from engine.model.loading.tokenizer_document import TokenizerDocument
from engine.model.model_config import ModelConfig
from engine.progress import Progress

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"  # without marks, which would cost half a second at each start
MARKS_FILE = "marks.json"

_FLOAT_BYTES = 4
# On disk; of int8, the embedding stays in 16 bits beside the head.
_BYTES_PER_WEIGHT = {"int8": 1, "bfloat16": 2, "float32": 4}
_SLACK_BYTES = 64 << 20  # tokenizer, scales, header


def check_quantization(quantization: str) -> None:
    """Raise ConfigurationError for one that no weights are stored in."""
    if quantization not in QUANTIZATIONS:
        raise ConfigurationError(
            f"dtype {quantization!r} is none of {', '.join(sorted(QUANTIZATIONS))}"
        )


def converted_bytes(config: ModelConfig, quantization: str) -> int:
    """Estimate the disk space of a converted model, rather too much than too little."""
    embedding = 2 * config.vocab_size * config.hidden_size if quantization == "int8" else 0
    return _BYTES_PER_WEIGHT.get(quantization, 4) * config.num_parameters + embedding + _SLACK_BYTES


def convert(
    source: FilesModel, name: str, quantization: str, folder: Path, progress: Progress
) -> None:
    """Write weights, configuration and tokenizer into an empty folder.

    One weight is in memory at a time, besides what packing makes of it.
    """
    config = source.config
    (folder / CONFIG_FILE).write_text(json.dumps(config.to_hugging_face(), indent=1), "utf-8")
    _write_tokenizer(source, folder)

    def read(tensor_name: str) -> torch.Tensor:
        tensor = source.read(tensor_name)
        progress.advance(tensor.numel() * _FLOAT_BYTES)
        return tensor

    progress.begin(
        f"converting {name} to {quantization}, once on this machine",
        config.num_parameters * _FLOAT_BYTES,
    )
    try:
        with (folder / WEIGHTS_FILE).open("wb") as file, torch.inference_mode():
            writer = SafetensorsWriter(file)
            for tensor_name, tensor in QUANTIZATIONS[quantization](config, read):
                writer.write(tensor_name, tensor)
            writer.close()
    finally:
        progress.end()


def _write_tokenizer(source: FilesModel, folder: Path) -> None:
    document = TokenizerDocument.read(source.tokenizer_json())
    (folder / TOKENIZER_FILE).write_text(document.plain, "utf-8")
    marks = {
        "marks": document.marks,
        "start_ids": document.start_ids,
        "end_ids": source.end_ids,
        "byte_level": document.byte_level,
    }
    (folder / MARKS_FILE).write_text(json.dumps(marks, indent=1), "utf-8")
