"""Loads a model of transformers from a folder or the hub for `transformers_adapter`."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from engine.errors import (
    ConfigurationError,
    ModelCorruptError,
    ModelNotFoundError,
    UnsupportedModelError,
)
from engine.model.transformers_adapter import TransformersModel

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}


def load_transformers_model(
    name: str, *, dtype_name: str = "float32", device: str = "cpu", download: bool = True
) -> TransformersModel:
    """Load the folder or hub id `name`: local files first, then the hub if `download` allows it.

    Code that comes with a model is never run. Raises ModelNotFoundError, ModelCorruptError,
    UnsupportedModelError and, for a dtype that no model is held in, ConfigurationError.
    """
    if dtype_name not in _DTYPES:
        raise ConfigurationError(f"dtype {dtype_name!r} is none of {', '.join(_DTYPES)}")
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        network = _load(name, _DTYPES[dtype_name], download=download)
    except SafetensorError as error:
        raise ModelCorruptError(f"the weights of {name!r} are damaged: {error}") from error
    except ValueError as error:
        raise UnsupportedModelError(f"transformers cannot load {name!r}: {error}") from error
    module: torch.nn.Module = network
    module.to(device).eval()
    return TransformersModel(network)


def _load(name: str, dtype: torch.dtype, *, download: bool) -> PreTrainedModel:
    try:
        return _from_pretrained(name, dtype, local_files_only=True)
    except OSError as error:
        if Path(name).is_dir():
            raise ModelNotFoundError(f"the folder {name} holds no whole model: {error}") from error
        if not download:
            raise _not_found(name, "and downloads are off") from error
    try:
        return _from_pretrained(name, dtype, local_files_only=False)
    except OSError as error:
        raise _not_found(name, f"nor could it be fetched: {error}") from error


def _not_found(name: str, reason: str) -> ModelNotFoundError:
    return ModelNotFoundError(
        f"{name!r} is neither a local folder nor in Hugging Face's cache, {reason}"
    )


def _from_pretrained(name: str, dtype: torch.dtype, *, local_files_only: bool) -> PreTrainedModel:
    """Load the network; a tensor that the files lack would be random, so that is an error."""
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        name,
        dtype=dtype,
        local_files_only=local_files_only,
        trust_remote_code=False,
        output_loading_info=True,
    )
    network: PreTrainedModel
    report: dict[str, Any]
    network, report = loaded
    faults = sorted(
        str(fault) for key in ("missing_keys", "mismatched_keys") for fault in report[key]
    )
    if faults:
        raise ModelCorruptError(
            f"the files of {name!r} lack whole tensors: {', '.join(faults[:3])}"
        )
    return network
