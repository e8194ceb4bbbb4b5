"""The values of `dtype` that a GPU holds weights in. It loads no torch."""

from typing import TYPE_CHECKING

from engine.errors import ConfigurationError

if TYPE_CHECKING:
    from kernels.weight import Quantization

GPU_QUANTIZATIONS: dict[str, "Quantization"] = {"bfloat16": "float", "fp8": "fp8", "int4": "int4"}


def gpu_quantization(wanted: str | None) -> "Quantization":
    """Return how our kernels store weights; None means bfloat16. Raises ConfigurationError."""
    if wanted is not None and wanted not in GPU_QUANTIZATIONS:
        raise ConfigurationError(
            f"dtype {wanted} is for the CPU; a GPU holds {', '.join(GPU_QUANTIZATIONS)}"
        )
    return GPU_QUANTIZATIONS[wanted or "bfloat16"]
