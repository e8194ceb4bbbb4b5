"""Small random causal language models of transformers, and folders that hold them.

The weights are drawn again after transformers' initialisation, which hides mistakes: biases are
zero, norms are one and logits nearly flat.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.support.byte_tokenizer import CONTROL_TOKENS, VOCAB_SIZE, byte_tokenizer

_SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
}

# Each message is a file, as these models know no roles.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|file_sep|>' + message.role + '\\n' + message.content }}"
    "{% endfor %}{{ '<|file_sep|>assistant\\n' }}"
)

_EXPERTS = {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_EXTRA: dict[str, dict[str, Any]] = {
    "starcoder2": {"sliding_window": None, "residual_dropout": 0.0, "embedding_dropout": 0.0},
    "gemma": {"head_dim": 8},
    # Up to transformers 5.17, gemma2 defaults to sdpa, which drops its soft-capping.
    "gemma2": {
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "sliding_window": 16,
        "attn_implementation": "eager",
    },
    "gemma3_text": {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 16},
    "mistral": {"sliding_window": 16},
    "qwen3_moe": _EXPERTS,
    "bloom": {"n_head": 4},
    "gpt_oss": {"head_dim": 8, "num_local_experts": 4, "sliding_window": 16},
    "qwen3_next": _EXPERTS,
}


def tiny_model(
    family: str, seed: int = 0, dtype: torch.dtype = torch.float32, **overrides: Any
) -> transformers.PreTrainedModel:
    """Make a random model of a `model_type`; `overrides` go to its config. Same arguments, same model."""
    settings = _SHAPE | _EXTRA.get(family, {}) | overrides
    config = transformers.AutoConfig.for_model(family, **settings)
    model: transformers.PreTrainedModel = transformers.AutoModelForCausalLM.from_config(config)
    randomise(model, seed)
    module: torch.nn.Module = model
    module.to(dtype).eval()
    return model


@torch.no_grad()
def randomise(model: torch.nn.Module, seed: int) -> None:
    """Draw every parameter: matrices that keep a vector's length, and uneven norms and biases.

    Drawn in float64, so models that differ only in dtype hold the same numbers, rounded.
    """
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if parameter.dim() > 1:
            parameter.copy_(noise * (1.5 / parameter.shape[-1] ** 0.5))
        else:
            parameter.add_((0.2 * noise).to(parameter.dtype))


def assembled(
    config: dict[str, Any], read: Callable[[str], torch.Tensor]
) -> transformers.PreTrainedModel:
    """Build transformers' model around the tensors that `read` gives by name, without copies."""
    with torch.device("meta"):
        shape = transformers.AutoConfig.for_model(**config)
        model: Any = transformers.AutoModelForCausalLM.from_config(shape)
    names = set(model.state_dict())
    if config["tie_word_embeddings"]:
        names.remove("lm_head.weight")
    model.load_state_dict({name: read(name) for name in names}, strict=False, assign=True)
    model.tie_weights()
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=model.config)  # its table is on `meta` as well
    trained: transformers.PreTrainedModel = model.eval()
    return trained


def save_model(
    model: transformers.PreTrainedModel,
    folder: Path,
    control_tokens: tuple[str, ...] = CONTROL_TOKENS,
) -> Path:
    """Write config.json, model.safetensors and tokenizer.json, as the hub keeps them."""
    model.save_pretrained(folder)
    byte_tokenizer(control_tokens).save(str(folder / "tokenizer.json"))
    return folder


def tiny_engine(folder: Path) -> Any:
    from engine.loader import load_engine

    shape: dict[str, Any] = {"num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 56}
    model = save_model(tiny_model("qwen2", seed=4, **shape), folder / "model")
    (model / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    before = torch.get_num_threads()
    engine = load_engine(cache_folder=folder / "cache", model=str(model), threads=1)
    torch.set_num_threads(before)
    return engine
