"""Pack a model's weights, known by their Hugging Face names, for a way of computing.

`int8`, for the CPU, has 8-bit weights with a scale per output, and 8-bit activations with a scale
per 64 inputs. So sums are exact integers, and a row's result cannot depend on the rows beside it.
In Qwen2, some channels of the activations are a hundred times larger than the rest. So fixed
orthogonal matrices rotate the residual stream and the heads' values (QuaRot, arXiv 2404.00456).
The next matrices absorb norm weights, as only a norm without weights commutes with a rotation.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import torch

from engine.model.model_config import ModelConfig
from kernels.cpu_forward import Linear, Matrix, pack
from kernels.weight import Weight, stacked

Read = Callable[[str], torch.Tensor]  # Hugging Face name -> float32 tensor
# A name that comes again goes on with the same tensor, along its first dimension.
NamedTensor = tuple[str, torch.Tensor]
OwnForm = Callable[[str], Weight | None]  # Hugging Face name -> the matrix in its file's form
Packer = Callable[[ModelConfig, Read], Iterator[NamedTensor]]

WEIGHT_LEVELS = 127  # the largest code of int8; -128 is not used, so codes are symmetric
_ROWS = 16384  # rows of a matrix rotated at a time, to bound the memory of a conversion
_RESIDUAL_SEED, _HEAD_SEED = 1, 2


def pack_int8(config: ModelConfig, read: Read) -> Iterator[NamedTensor]:
    """Yield `embedding` float16, and for each kind of linear the arrays of a `Matrix`.

    They are `qkv.codes`, `qkv.scale`, `qkv.bias` and so on, in the layout of this processor.
    """
    rotated = _Rotated(config, read)
    yield from rotated.embedding()
    layers = [f"model.layers.{layer}" for layer in range(config.num_layers)]
    yield from _laid_out("qkv", map(rotated.qkv, layers))
    yield from _laid_out("o", map(rotated.o, layers))
    yield from _laid_out("gate_up", map(rotated.gate_up, layers), paired=True)
    yield from _laid_out("down", map(rotated.down, layers))
    yield from _laid_out("head", [rotated.head()])


class _Rotated:
    """A model's linears by their layer's name, in 8 bits, around rotated activations."""

    def __init__(self, config: ModelConfig, read: Read) -> None:
        self._config, self._read = config, read
        self._rotation = _orthogonal(config.hidden_size, _RESIDUAL_SEED)
        self._of_head = _orthogonal(config.head_dim, _HEAD_SEED)

    def embedding(self) -> Iterator[NamedTensor]:
        for rows in self._read("model.embed_tokens.weight").split(_ROWS):
            yield "embedding", (rows @ self._rotation).half()

    def qkv(self, layer: str) -> Linear:
        names, norm = [f"{layer}.self_attn.{part}_proj" for part in "qkv"], self._norm(layer)
        weights = [self._read(f"{name}.weight") * norm for name in names]
        weights[2] = _rotate_head_outputs(weights[2], self._of_head)
        bias = None
        if self._config.qkv_bias:
            biases = [self._read(f"{name}.bias") for name in names]
            biases[2] = _rotate_head_outputs(biases[2][:, None], self._of_head)[:, 0]
            bias = torch.cat(biases)
        return _quantized([_rotate_inputs(torch.cat(weights), self._rotation)], bias)

    def o(self, layer: str) -> Linear:
        out = self._read(f"{layer}.self_attn.o_proj.weight")
        heads = out.view(len(out), -1, self._config.head_dim) @ self._of_head
        return _quantized([self._rotation.T @ heads.reshape(out.shape)])

    def gate_up(self, layer: str) -> Linear:
        norm = self._norm(layer, "post_attention")
        both = torch.cat([self._read(f"{layer}.mlp.{part}_proj.weight") for part in ("gate", "up")])
        return _quantized([_rotate_inputs(both * norm, self._rotation)])

    def down(self, layer: str) -> Linear:
        return _quantized([self._rotation.T @ self._read(f"{layer}.mlp.down_proj.weight")])

    def head(self) -> Linear:
        is_tied = self._config.tie_word_embeddings
        weight = self._read("model.embed_tokens.weight" if is_tied else "lm_head.weight")
        norm = self._read("model.norm.weight")
        return _quantized((rows * norm) @ self._rotation for rows in weight.split(_ROWS))

    def _norm(self, layer: str, place: str = "input") -> torch.Tensor:
        return self._read(f"{layer}.{place}_layernorm.weight")


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


def _laid_out(
    kind: str, layers: Iterable[Linear], *, paired: bool = False
) -> Iterator[NamedTensor]:
    """Yield the codes layer by layer, then the scales and biases of all."""
    small = []
    for linear in layers:
        packed = pack(linear, paired=paired)
        small.append(packed._replace(codes=packed.codes[:0]))
        yield f"{kind}.codes", torch.from_numpy(packed.codes)
    whole = Matrix(*map(np.concatenate, zip(*small, strict=True)))
    yield f"{kind}.scale", torch.from_numpy(whole.scale)
    yield f"{kind}.bias", torch.from_numpy(whole.bias)


def _quantized(parts: Iterable[torch.Tensor], bias: torch.Tensor | None = None) -> Linear:
    """Quantise a matrix that comes in parts, each in place: whole, a head would take a GB more."""
    codes, scales = list[np.ndarray](), list[np.ndarray]()
    for rows in parts:
        scale = torch.maximum(rows.amax(dim=1), -rows.amin(dim=1)).clamp_min(1e-12) / WEIGHT_LEVELS
        codes.append(rows.div_(scale[:, None]).round_().to(torch.int8).numpy())
        scales.append(scale.numpy())
    return Linear(
        weight=np.concatenate(codes),
        scale=np.concatenate(scales),
        bias=None if bias is None else bias.numpy(),
    )
