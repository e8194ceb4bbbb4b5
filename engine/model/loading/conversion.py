"""Turns a weight source into the files that a start maps: once, in the form that computing wants."""

import json
from pathlib import Path

import torch

from engine.errors import ConfigurationError
from engine.model.loading.packing import VARIANTS
from engine.model.loading.safetensors_writer import SafetensorsWriter
from engine.model.loading.tokenizer_document import TokenizerDocument
from engine.model.loading.weight_source import WeightSource
from engine.model.model_config import ModelConfig
from engine.progress import Progress

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"  # without marks, which would cost half a second at each start
MARKS_FILE = "marks.json"

_FLOAT_BYTES = 4
# Disk bytes per parameter; of int8, the embedding stays in 16 bits beside the head.
_VARIANT_BYTES = {"int8": 1, "bfloat16": 2, "float32": 4}
_SLACK_BYTES = 64 << 20  # tokenizer, scales, header


def check_variant(variant: str) -> None:
    """Raise ConfigurationError unless weights can be held in this form."""
    if variant not in VARIANTS:
        raise ConfigurationError(f"dtype {variant!r} is none of {', '.join(sorted(VARIANTS))}")


def converted_bytes(config: ModelConfig, variant: str) -> int:
    """Estimate the disk space of a converted model, rather too much than too little."""
    embedding = 2 * config.vocab_size * config.hidden_size if variant == "int8" else 0
    return _VARIANT_BYTES.get(variant, 4) * config.num_parameters + embedding + _SLACK_BYTES


def convert(
    source: WeightSource, name: str, variant: str, folder: Path, progress: Progress
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
        f"converting {name} to {variant}, once on this machine",
        config.num_parameters * _FLOAT_BYTES,
    )
    try:
        with (folder / WEIGHTS_FILE).open("wb") as file, torch.inference_mode():
            writer = SafetensorsWriter(file)
            for tensor_name, tensor in VARIANTS[variant](config, read):
                writer.write(tensor_name, tensor)
            writer.close()
    finally:
        progress.end()


def _write_tokenizer(source: WeightSource, folder: Path) -> None:
    document = TokenizerDocument.read(source.tokenizer_json())
    (folder / TOKENIZER_FILE).write_text(document.plain, "utf-8")
    marks = {
        "marks": document.marks,
        "start_ids": document.start_ids,
        "end_ids": source.end_ids,
        "byte_level": document.byte_level,
    }
    (folder / MARKS_FILE).write_text(json.dumps(marks, indent=1), "utf-8")
