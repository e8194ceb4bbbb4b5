"""The shapes of the models that a machine is planned for, known before any of them is there."""

from engine.model.model_config import ModelConfig


def _qwen(
    layers: int, hidden: int, heads: int, kv_heads: int, inter: int, vocab: int
) -> ModelConfig:
    return ModelConfig(
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=hidden // heads,
        intermediate_size=inter,
        vocab_size=vocab,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        tie_word_embeddings=vocab == 151936,
        max_position=32768,
    )


QWEN_SHAPES = {  # of Qwen2.5-Coder, by alias
    "0.5b": _qwen(24, 896, 14, 2, 4864, 151936),
    "1.5b": _qwen(28, 1536, 12, 2, 8960, 151936),
    "3b": _qwen(36, 2048, 16, 2, 11008, 151936),
    "7b": _qwen(28, 3584, 28, 4, 18944, 152064),
    "14b": _qwen(48, 5120, 40, 8, 13824, 152064),
    "32b": _qwen(64, 5120, 40, 8, 27648, 152064),
}
