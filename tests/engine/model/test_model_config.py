"""A model's shape is read from config.json, and one that cannot be is refused."""

from typing import Any

import pytest
import transformers

from engine.errors import ModelCorruptError
from engine.model.model_config import ModelConfig

_QWEN2: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "max_position_embeddings": 32768,
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 32768,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}


def test_reads_the_configuration_of_the_hub() -> None:
    config = ModelConfig.from_hugging_face(_QWEN2)
    assert not config.deviations
    assert (config.head_dim, config.rope_theta, config.tie_word_embeddings) == (64, 1e6, True)
    assert config.num_parameters == 494_032_768  # as the model's page says: 0.49B


_SEED_CODER: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "vocab_size": 155136,
}


def test_a_llama_is_a_qwen2_without_biases() -> None:
    config = ModelConfig.from_hugging_face(_SEED_CODER)
    assert not config.deviations
    assert (config.qkv_bias, config.head_dim, config.rope_theta) == (False, 128, 500000.0)
    # Its paper says 8.2 billion.
    assert round(config.num_parameters / 1e9, 2) == 8.25
    written = transformers.LlamaConfig(**_SEED_CODER).to_dict()
    assert ModelConfig.from_hugging_face(written) == config


def test_reads_what_transformers_writes_today() -> None:
    written = transformers.Qwen2Config(**_QWEN2).to_dict()
    assert ModelConfig.from_hugging_face(written) == ModelConfig.from_hugging_face(_QWEN2)


@pytest.mark.parametrize(
    ("content", "change", "deviation"),
    [
        (_QWEN2, {"use_sliding_window": True}, "sliding window"),
        (_QWEN2, {"rope_scaling": {"type": "yarn", "factor": 4.0}}, "yarn rotary embedding"),
        (_QWEN2, {"rope_parameters": {"rope_type": "linear"}}, "linear rotary embedding"),
        (_QWEN2, {"hidden_act": "gelu"}, "gelu activation"),
        (_SEED_CODER, {"attention_bias": True}, "attention bias"),
        (_SEED_CODER, {"mlp_bias": True}, "mlp bias"),
        (
            _SEED_CODER,
            {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
            "rotary embedding of a part of a head",
        ),
    ],
)
def test_a_model_with_more_than_our_forward_knows_is_not_plain(content, change, deviation):
    config = ModelConfig.from_hugging_face(content | change)
    assert config.deviations == (deviation,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": "wide"}, "lacks or garbles"),
        ({"num_attention_heads": 0}, "lacks or garbles"),
        ({"num_hidden_layers": 0}, "num_layers = 0"),
        ({"max_position_embeddings": 2**31}, "max_position = 2147483648"),
        ({"max_position_embeddings": 1e400}, "lacks or garbles"),
        ({"vocab_size": 10**400}, r"vocab_size = 1000"),
        ({"rope_theta": float("nan")}, "rope_theta = nan"),
        ({"rms_norm_eps": float("inf")}, "rms_norm_eps = inf"),
        ({"num_key_value_heads": 4}, "14 query heads for 4"),
    ],
)
def test_an_impossible_configuration_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelCorruptError, match=message):
        ModelConfig.from_hugging_face(_QWEN2 | change)


def test_a_missing_entry_is_named() -> None:
    config = {name: value for name, value in _QWEN2.items() if name != "vocab_size"}
    with pytest.raises(ModelCorruptError, match="vocab_size"):
        ModelConfig.from_hugging_face(config)
