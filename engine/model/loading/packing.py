"""Pack a model's weights, known by their Hugging Face names, for a way of computing.

`int8`, for the CPU, has 8-bit weights with a scale per output, and 8-bit activations with a scale
per 64 inputs. So sums are exact integers, and a row's result cannot depend on the rows beside it.
In Qwen2, some channels of the activations are a hundred times larger than the rest. So fixed
orthogonal matrices rotate the residual stream and the heads' values (QuaRot, arXiv 2404.00456).
The next matrices absorb norm weights, as only a norm without weights commutes with a rotation.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from engine.model.model_config import ModelConfig
from kernels.weight import Weight, stacked

Read = Callable[[str], torch.Tensor]  # Hugging Face name -> float32 tensor
NamedTensor = tuple[str, torch.Tensor]
OwnForm = Callable[[str], Weight | None]  # Hugging Face name -> the matrix in its file's form
FILE_FORMS = "file"  # the quantization of `pack_own_forms`
Packer = Callable[[ModelConfig, Read], Iterator[NamedTensor]]

WEIGHT_LEVELS = 127  # the largest code of int8; -128 is not used, so codes are symmetric
_ROWS = 16384  # rows of a matrix rotated at a time, to bound the memory of a conversion
_RESIDUAL_SEED, _HEAD_SEED = 1, 2


def pack_int8(config: ModelConfig, read: Read) -> Iterator[NamedTensor]:
    """Yield `embedding` float16, and linears: `.weight` int8 [out, in], `.scale` [out], `.bias`."""
    rotation = _orthogonal(config.hidden_size, _RESIDUAL_SEED)
    head_rotation = _orthogonal(config.head_dim, _HEAD_SEED)
    yield "embedding", _rotate_inputs(read("model.embed_tokens.weight"), rotation).half()
    for layer in range(config.num_layers):
        hf, own = f"model.layers.{layer}", f"layers.{layer}"
        norm = read(f"{hf}.input_layernorm.weight")
        parts = [read(f"{hf}.self_attn.{part}_proj.weight") * norm for part in "qkv"]
        parts[2] = _rotate_head_outputs(parts[2], head_rotation)
        yield from _quantized(f"{own}.qkv", _rotate_inputs(torch.cat(parts), rotation))
        if config.qkv_bias:
            biases = [read(f"{hf}.self_attn.{part}_proj.bias") for part in "qkv"]
            biases[2] = _rotate_head_outputs(biases[2][:, None], head_rotation)[:, 0]
            yield f"{own}.qkv.bias", torch.cat(biases)
        out = read(f"{hf}.self_attn.o_proj.weight")
        heads = out.view(len(out), -1, config.head_dim) @ head_rotation
        yield from _quantized(f"{own}.o", rotation.T @ heads.reshape(out.shape))
        norm = read(f"{hf}.post_attention_layernorm.weight")
        gate_up = torch.cat([read(f"{hf}.mlp.{part}_proj.weight") for part in ("gate", "up")])
        yield from _quantized(f"{own}.gate_up", _rotate_inputs(gate_up * norm, rotation))
        yield from _quantized(f"{own}.down", rotation.T @ read(f"{hf}.mlp.down_proj.weight"))
    head = "model.embed_tokens" if config.tie_word_embeddings else "lm_head"
    normed = read(f"{head}.weight") * read("model.norm.weight")
    yield from _quantized("head", _rotate_inputs(normed, rotation))


def pack_own_forms(
    config: ModelConfig,
    read: Read,
    own_form: OwnForm = lambda _name: None,
    dtype: torch.dtype = torch.bfloat16,
) -> Iterator[NamedTensor]:
    """Yield the same linears in the file's forms (see `Weight`) or in `dtype`, and the norms."""

    def matrix(own: str, *names: str) -> Iterator[NamedTensor]:
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


PACKERS: dict[str, Packer] = {
    "int8": pack_int8,
    "float32": partial(pack_own_forms, dtype=torch.float32),
    "bfloat16": pack_own_forms,
}


def _orthogonal(size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    square = torch.randn(size, size, generator=generator, dtype=torch.float64)
    orthogonal: torch.Tensor = torch.linalg.qr(square)[0]
    return orthogonal.float()


def _rotate_inputs(weight: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    return torch.cat([rows @ rotation for rows in weight.split(_ROWS)])


def _rotate_head_outputs(weight: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    heads = weight.view(-1, rotation.shape[0], weight.shape[1])  # [heads, d, in]
    return (rotation.T @ heads).reshape(weight.shape)


def _quantized(name: str, weight: torch.Tensor) -> Iterator[NamedTensor]:
    """Quantise `weight` in place: a copy of a head of 150,000 rows would take half a GB."""
    scale = torch.maximum(weight.amax(dim=1), -weight.amin(dim=1)).clamp_min(1e-12) / WEIGHT_LEVELS
    yield f"{name}.weight", weight.div_(scale[:, None]).round_().to(torch.int8)
    yield f"{name}.scale", scale
