"""Packed weights in memory, as a conversion writes them to disk."""

import numpy as np
import torch

from engine.model.loading.float_packing import pack_own_forms
from engine.model.loading.int8_packing import Read, pack_int8
from engine.model.model_config import ModelConfig


def packed_arrays(config: ModelConfig, read: Read) -> dict[str, np.ndarray]:
    """Return the arrays of an `Int8Qwen2` by name, with the parts of each joined."""
    parts = dict[str, list[np.ndarray]]()
    for name, part in pack_int8(config, read):
        parts.setdefault(name, []).append(part)
    return {name: np.concatenate(own) for name, own in parts.items()}


def packed_tensors(quantization: str, config: ModelConfig, read: Read) -> dict[str, torch.Tensor]:
    """Return the tensors of any model by name."""
    if quantization == "int8":
        arrays = packed_arrays(config, read)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def tensor(name: str) -> torch.Tensor:
        return torch.from_numpy(read(name))

    return dict(pack_own_forms(config, tensor, dtype=getattr(torch, quantization)))
