"""The completion engine's face. It knows no editor, and importing it loads no torch."""

from engine.config import PRESETS, Layout, Lookahead, Sampling, StopRules
from engine.errors import (
    CacheError,
    ConfigurationError,
    ForegramError,
    InputError,
    ModelCorruptError,
    ModelNotFoundError,
    UnsupportedModelError,
)
from engine.request import (
    Buffer,
    Chunk,
    CompletionRequest,
    CompletionResult,
    Cost,
    FinishReason,
)

__all__ = [
    "PRESETS",
    "Buffer",
    "CacheError",
    "Chunk",
    "CompletionRequest",
    "CompletionResult",
    "ConfigurationError",
    "Cost",
    "FinishReason",
    "ForegramError",
    "InputError",
    "Layout",
    "Lookahead",
    "ModelCorruptError",
    "ModelNotFoundError",
    "Sampling",
    "StopRules",
    "UnsupportedModelError",
]
