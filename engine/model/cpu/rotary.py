"""The rotary embedding's angles."""

import numpy as np

from engine.model.model_config import ModelConfig

_STEP = 1024  # positions that the tables grow by


class Rotary:
    """Cosines and sines by position, computed in float64, as far as they were asked for."""

    def __init__(self, config: ModelConfig, dtype: np.dtype) -> None:
        """Hold the tables in `dtype`."""
        steps = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
        self._frequencies = config.rope_theta**-steps
        self._cosines = self._sines = np.empty((0, len(steps)), dtype)

    def at(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines [rows, head_dim / 2] each, for int64 `positions` [rows]."""
        if (last := int(positions.max())) >= len(self._cosines):
            angles = np.outer(np.arange((last // _STEP + 1) * _STEP), self._frequencies)
            self._cosines = np.cos(angles).astype(self._cosines.dtype)
            self._sines = np.sin(angles).astype(self._sines.dtype)
        return self._cosines[positions], self._sines[positions]
