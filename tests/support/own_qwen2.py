"""Our own Qwen2 around the weights of transformers'."""

from typing import Any

import torch
import transformers

from engine.model.cpu.float_qwen2 import FloatQwen2
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.loading.packing import PACKERS, pack_floats
from engine.model.model_config import ModelConfig
from tests.support.tiny_models import tiny_model

# As in the Qwen2.5-Coder models of 0.5B, 1.5B, 7B and 14B, with smaller heads.
SHAPES = {
    "14 of 2, tied": (14, 2, True),
    "12 of 2, tied": (12, 2, True),
    "28 of 4, untied": (28, 4, False),
    "10 of 2, untied": (10, 2, False),
}


def own_qwen2(reference: transformers.PreTrainedModel, quantization: str) -> FloatQwen2 | Int8Qwen2:
    """Pack the reference's weights as `quantization` says; `float64` stands for exact arithmetic."""
    config = ModelConfig.from_hugging_face(reference.config.to_dict())
    weights = reference.state_dict()
    if quantization == "float64":
        exact = {name: weight.double() for name, weight in weights.items()}
        tensors = dict(pack_floats(config, exact.__getitem__, torch.float64))
        return FloatQwen2(config, tensors, quantization)
    tensors = dict(PACKERS[quantization](config, weights.__getitem__))
    if quantization == "int8":
        return Int8Qwen2(config, tensors)
    return FloatQwen2(config, tensors, quantization)


def qwen2_pair(shape: str) -> tuple[FloatQwen2 | Int8Qwen2, Any]:
    """Return our model and transformers' with the same weights."""
    num_heads, num_kv_heads, tied = SHAPES[shape]
    overrides: dict[str, Any] = {
        "num_attention_heads": num_heads,
        "num_key_value_heads": num_kv_heads,
        "hidden_size": 8 * num_heads,
        "tie_word_embeddings": tied,
    }
    reference = tiny_model("qwen2", **overrides)
    return own_qwen2(reference, "float32"), reference
