"""The rotary embedding's angles."""

import numpy as np

from engine.model.model_config import ModelConfig


class Rotary:
    """Cosines and sines by position, computed in float64."""

    def __init__(self, config: ModelConfig) -> None:
        steps = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
        self._frequencies = config.rope_theta**-steps

    def at(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines, float64 [rows, head_dim / 2] each, for int64 `positions` [rows]."""
        angles = np.outer(positions, self._frequencies)
        return np.cos(angles), np.sin(angles)
