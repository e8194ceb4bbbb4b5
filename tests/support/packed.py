"""Packed weights in memory, as a conversion writes them to disk."""

from collections.abc import Callable

import numpy as np
import torch

from engine.model.loading.packing import PACKERS
from engine.model.model_config import ModelConfig


def packed_tensors(
    quantization: str, config: ModelConfig, read: Callable[[str], torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the tensors by name, with the parts of each joined."""
    parts = dict[str, list[torch.Tensor]]()
    for name, part in PACKERS[quantization](config, read):
        parts.setdefault(name, []).append(part)
    return {name: torch.cat(own) for name, own in parts.items()}


def packed_arrays(
    config: ModelConfig, read: Callable[[str], torch.Tensor]
) -> dict[str, np.ndarray]:
    """Return the arrays of an `Int8Qwen2`."""
    return {name: one.numpy() for name, one in packed_tensors("int8", config, read).items()}
