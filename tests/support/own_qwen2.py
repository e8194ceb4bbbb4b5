"""Our own forward with the weights of transformers' Qwen2 or Llama."""

from typing import Any

import torch
import transformers

from engine.model.cpu.float_qwen2 import FloatQwen2
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.loading.float_packing import pack_own_forms
from engine.model.model_config import ModelConfig
from tests.support.packed import packed_arrays
from tests.support.tiny_models import tiny_model

# The shapes of Qwen2.5-Coder 0.5B, 1.5B, 7B and 14B, and of Seed-Coder-8B, with smaller heads. Last
# a Llama whose heads are larger than their part of the hidden size, each with its own keys.
SHAPES = {
    "14 of 2, tied": ("qwen2", 14, 2, 8, True),
    "12 of 2, tied": ("qwen2", 12, 2, 8, True),
    "28 of 4, untied": ("qwen2", 28, 4, 8, False),
    "10 of 2, untied": ("qwen2", 10, 2, 8, False),
    "Llama, 32 of 8, untied": ("llama", 32, 8, 8, False),
    "Llama, 6 of 6, tied": ("llama", 6, 6, 16, True),
}


def own_qwen2(reference: transformers.PreTrainedModel, quantization: str) -> FloatQwen2 | Int8Qwen2:
    """Pack the reference's weights as `quantization` says; `float64` stands for exact arithmetic."""
    config = ModelConfig.from_hugging_face(reference.config.to_dict())
    weights = reference.state_dict()
    if quantization == "int8":
        arrays = packed_arrays(config, lambda name: weights[name].numpy())
        return Int8Qwen2(config, arrays, arrays["embedding"], torch.get_num_threads())
    dtype = getattr(torch, quantization)
    held = {
        name: weight.to(torch.promote_types(dtype, torch.float32))
        for name, weight in weights.items()
    }
    return FloatQwen2(
        config, dict(pack_own_forms(config, held.__getitem__, dtype=dtype)), quantization
    )


def qwen2_pair(shape: str) -> tuple[FloatQwen2 | Int8Qwen2, Any]:
    """Return our model and transformers' with the same weights."""
    family, num_heads, num_kv_heads, head_dim, tied = SHAPES[shape]
    overrides: dict[str, Any] = {
        "num_attention_heads": num_heads,
        "num_key_value_heads": num_kv_heads,
        "head_dim": head_dim,
        "hidden_size": 8 * num_heads,
        "tie_word_embeddings": tied,
    }
    reference = tiny_model(family, **overrides)
    return own_qwen2(reference, "float32"), reference
