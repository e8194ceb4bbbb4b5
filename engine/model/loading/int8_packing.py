"""Pack a model's weights, known by their Hugging Face names, for 8-bit products on a CPU.

Weights have a scale per output, activations one per 64 inputs. So sums are exact integers, and a
row's result cannot depend on the rows beside it.
In Qwen2, some channels of the activations are a hundred times larger than the rest. So fixed
orthogonal matrices rotate the residual stream and the heads' values (QuaRot, arXiv 2404.00456).
The next matrices absorb norm weights, as only a norm without weights commutes with a rotation.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from engine.model.model_config import ModelConfig
from kernels.cpu_forward import Linear, Matrix, pack

Read = Callable[[str], np.ndarray]  # Hugging Face name -> float32 array
# A name that comes again goes on with the same array, along its first dimension.
NamedArray = tuple[str, np.ndarray]

_WEIGHT_LEVELS = 127  # the largest code of int8; -128 is not used, so codes are symmetric
_ROWS = 16384  # rows of a matrix rotated at a time, to bound the memory of a conversion
_RESIDUAL_SEED, _HEAD_SEED = 1, 2


def pack_int8(config: ModelConfig, read: Read) -> Iterator[NamedArray]:
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

    def embedding(self) -> Iterator[NamedArray]:
        for rows in _pieces(self._read("model.embed_tokens.weight")):
            yield "embedding", (rows @ self._rotation).astype(np.float16)

    def qkv(self, layer: str) -> Linear:
        names, norm = [f"{layer}.self_attn.{part}_proj" for part in "qkv"], self._norm(layer)
        weights = [self._read(f"{name}.weight") * norm for name in names]
        weights[2] = _rotate_head_outputs(weights[2], self._of_head)
        bias = None
        if self._config.qkv_bias:
            biases = [self._read(f"{name}.bias") for name in names]
            biases[2] = _rotate_head_outputs(biases[2][:, None], self._of_head)[:, 0]
            bias = np.concatenate(biases)
        return _quantized([np.concatenate(weights) @ self._rotation], bias)

    def o(self, layer: str) -> Linear:
        out = self._read(f"{layer}.self_attn.o_proj.weight")
        heads = out.reshape(len(out), -1, self._config.head_dim) @ self._of_head
        return _quantized([self._rotation.T @ heads.reshape(out.shape)])

    def gate_up(self, layer: str) -> Linear:
        norm = self._norm(layer, "post_attention")
        both = [self._read(f"{layer}.mlp.{part}_proj.weight") for part in ("gate", "up")]
        return _quantized((rows * norm) @ self._rotation for rows in both)

    def down(self, layer: str) -> Linear:
        return _quantized([self._rotation.T @ self._read(f"{layer}.mlp.down_proj.weight")])

    def head(self) -> Linear:
        is_tied = self._config.tie_word_embeddings
        weight = self._read("model.embed_tokens.weight" if is_tied else "lm_head.weight")
        norm = self._read("model.norm.weight")
        return _quantized((rows * norm) @ self._rotation for rows in _pieces(weight))

    def _norm(self, layer: str, place: str = "input") -> np.ndarray:
        return self._read(f"{layer}.{place}_layernorm.weight")


def _orthogonal(size: int, seed: int) -> np.ndarray:
    square = np.random.default_rng(seed).standard_normal((size, size))
    return np.linalg.qr(square)[0].astype(np.float32)


def _pieces(matrix: np.ndarray) -> Iterator[np.ndarray]:
    return (matrix[row : row + _ROWS] for row in range(0, len(matrix), _ROWS))


def _rotate_head_outputs(weight: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    heads = weight.reshape(-1, len(rotation), weight.shape[1])  # [heads, d, in]
    rotated: np.ndarray = (rotation.T @ heads).reshape(weight.shape)
    return rotated


def _laid_out(kind: str, layers: Iterable[Linear], *, paired: bool = False) -> Iterator[NamedArray]:
    """Yield the codes layer by layer, then the scales and biases of all."""
    small = []
    for linear in layers:
        packed = pack(linear, paired=paired)
        small.append(packed._replace(codes=packed.codes[:0]))
        yield f"{kind}.codes", packed.codes
    whole = Matrix(*map(np.concatenate, zip(*small, strict=True)))
    yield f"{kind}.scale", whole.scale
    yield f"{kind}.bias", whole.bias


def _quantized(parts: Iterable[np.ndarray], bias: np.ndarray | None = None) -> Linear:
    """Quantise a matrix that comes in parts, each in place: whole, a head would take a GB more."""
    codes, scales = list[np.ndarray](), list[np.ndarray]()
    for rows in parts:
        largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        scale = np.maximum(largest, 1e-12) / np.float32(_WEIGHT_LEVELS)
        np.divide(rows, scale[:, None], out=rows)
        codes.append(np.rint(rows, out=rows).astype(np.int8))
        scales.append(scale)
    return Linear(np.concatenate(codes), np.concatenate(scales), bias)
