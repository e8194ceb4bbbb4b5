"""Loads a folder in Hugging Face's layout for `adapter`."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from engine.errors import (
    ConfigurationError,
    ForegramError,
    ModelCorruptError,
    NoSpaceError,
    UnsupportedModelError,
)
from engine.model.device import DeviceUnfitError
from engine.model.transformers.adapter import TransformersModel
from engine.model_names import printable

_DTYPES = ("float32", "bfloat16", "float16", "float64")


def load_transformers_model(
    folder: Path, *, dtype_name: str = "float32", device: str = "cpu"
) -> TransformersModel:
    """Load config.json and the .safetensors files beside it. Nothing is fetched.

    Code that comes with a model is never run. Raises ModelCorruptError, UnsupportedModelError,
    NoSpaceError, DeviceUnfitError and, for a dtype that no model is held in, ConfigurationError.
    """
    if dtype_name not in _DTYPES:
        raise ConfigurationError(f"dtype {dtype_name!r} is none of {', '.join(_DTYPES)}")
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model = _from_pretrained(folder, getattr(torch, dtype_name))
    except (OSError, SafetensorError) as error:
        raise ModelCorruptError(f"{folder} holds no whole model: {_told(error)}") from error
    except ForegramError:
        raise
    except Exception as error:  # a configuration that makes no sense fails anywhere in it
        raise UnsupportedModelError(f"transformers cannot load {folder}: {_told(error)}") from error
    module: torch.nn.Module = model
    try:
        module.to(device).eval()
        return TransformersModel(model)
    except (RuntimeError, TypeError) as error:  # of a GPU; a CPU has none of these
        reason = str(error).partition("\n")[0]
        if "out of memory" in str(error):
            raise NoSpaceError(
                f"the model does not fit the memory of {device}: {reason}"
            ) from error
        raise DeviceUnfitError(f"torch cannot run the model on {device}: {reason}") from error


def _told(error: Exception) -> str:
    """What it says, on one line; it may quote a file."""
    return printable(" ".join(str(error).split()))


def _from_pretrained(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Load the model; a tensor that the files lack would be random, so that is an error."""
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=dtype,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
    )
    model: PreTrainedModel
    report: dict[str, Any]
    model, report = loaded
    faults = [str(fault) for key in ("missing_keys", "mismatched_keys") for fault in report[key]]
    if faults:
        raise ModelCorruptError(f"{folder} lacks whole tensors: {', '.join(sorted(faults)[:3])}")
    return model
