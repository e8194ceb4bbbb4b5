"""Packed weights in memory, as a conversion writes them to disk."""

import numpy as np

from engine.model.loading.converted_model import INT8
from engine.model.loading.float_packing import pack_floats
from engine.model.loading.int8_packing import Read, pack_int8
from engine.model.model_config import ModelConfig


def packed_arrays(quantization: str, config: ModelConfig, read: Read) -> dict[str, np.ndarray]:
    """Return the arrays by name, with the parts of each joined."""
    parts = dict[str, list[np.ndarray]]()
    packed = (
        pack_int8(config, read)
        if quantization == INT8
        else pack_floats(config, read, lambda _name: None, quantization)
    )
    for name, part in packed:
        parts.setdefault(name, []).append(part)
    return {name: np.concatenate(own) for name, own in parts.items()}
