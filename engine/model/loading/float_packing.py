"""Yield a model's weights, known by their Hugging Face names, in floats or in their file's forms."""

from collections.abc import Callable, Iterator

import torch

from engine.model.model_config import ModelConfig
from kernels.weight import Weight, stacked

ReadTensor = Callable[[str], torch.Tensor]  # Hugging Face name -> float32 tensor
OwnForm = Callable[[str], Weight | None]  # Hugging Face name -> the matrix in its file's form


def pack_own_forms(
    config: ModelConfig,
    read: ReadTensor,
    own_form: OwnForm = lambda _name: None,
    dtype: torch.dtype = torch.bfloat16,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each linear in the file's form (see `Weight`) or in `dtype`, and the norms."""

    def matrix(own: str, *names: str) -> Iterator[tuple[str, torch.Tensor]]:
        parts = [part for name in names if (part := own_form(f"{name}.weight")) is not None]
        weight = stacked(parts) if len(parts) == len(names) else None
        if weight is None or weight.scales is None:
            floats = [read(f"{name}.weight").to(dtype) for name in names]
            whole = torch.cat(floats) if len(floats) > 1 else floats[0]
            yield own if own == "embedding" else f"{own}.weight", whole
        else:
            yield f"{own}.{weight.quantization}.values", weight.values
            yield f"{own}.{weight.quantization}.scales", weight.scales

    yield from matrix("embedding", "model.embed_tokens")
    for layer in range(config.num_layers):
        hf, own = f"model.layers.{layer}", f"layers.{layer}"
        qkv = [f"{hf}.self_attn.{part}_proj" for part in "qkv"]
        yield f"{own}.qkv.norm", read(f"{hf}.input_layernorm.weight")
        yield from matrix(f"{own}.qkv", *qkv)
        if config.qkv_bias:
            yield f"{own}.qkv.bias", torch.cat([read(f"{name}.bias") for name in qkv])
        yield from matrix(f"{own}.o", f"{hf}.self_attn.o_proj")
        yield f"{own}.gate_up.norm", read(f"{hf}.post_attention_layernorm.weight")
        yield from matrix(f"{own}.gate_up", f"{hf}.mlp.gate_proj", f"{hf}.mlp.up_proj")
        yield from matrix(f"{own}.down", f"{hf}.mlp.down_proj")
    yield "head.norm", read("model.norm.weight")
    if not config.tie_word_embeddings:
        yield from matrix("head", "lm_head")
