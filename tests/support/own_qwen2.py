"""Our own Qwen2 around the weights of transformers'."""

import torch
import transformers

from engine.model.cpu.qwen2 import Qwen2
from engine.model.loading.packing import PACKERS, pack_floats
from engine.model.model_config import QWEN2, ModelConfig


def own_qwen2(reference: transformers.PreTrainedModel, quantization: str) -> Qwen2:
    """Pack the reference's weights as `quantization` says; `float64` stands for exact arithmetic."""
    described = reference.config.to_dict() | {"architectures": [QWEN2]}
    config = ModelConfig.from_hugging_face(described)
    weights = reference.state_dict()
    if quantization == "float64":
        exact = {name: weight.double() for name, weight in weights.items()}
        return Qwen2(
            config, dict(pack_floats(config, exact.__getitem__, torch.float64)), quantization
        )
    return Qwen2(config, dict(PACKERS[quantization](config, weights.__getitem__)), quantization)
