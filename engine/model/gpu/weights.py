"""Weights in the order and quantization that a step's kernels read."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import torch

from engine.model.gpu.embedding import Embedding
from engine.model.model_config import ModelConfig
from kernels.weight import STORED_FORMS, Quantization, Weight, pack

Arrange = Callable[[torch.Tensor], torch.Tensor]  # reorders rows
_SHOWN = {"q6_k_min": "q6_k", "int4_zeros": "int4"}  # usual names of extended forms


@dataclass(frozen=True, slots=True)
class GpuLayer:
    """One layer. The norms precede qkv, and gate and up."""

    qkv_norm_weight: torch.Tensor
    qkv: Weight
    qkv_bias: torch.Tensor
    o: Weight
    gate_up_norm_weight: torch.Tensor
    gate_up: Weight
    down: Weight

    @property
    def matrices(self) -> tuple[Weight, Weight, Weight, Weight]:
        """Return the four matrices that products read."""
        return self.qkv, self.o, self.gate_up, self.down

    @property
    def forms(self) -> tuple[str, ...]:
        """Return the form of each matrix. Layers of the same forms use the same kernels."""
        return tuple(matrix.quantization for matrix in self.matrices)


@dataclass(frozen=True, slots=True)
class GpuWeights:
    """A model's weights. `cos_sin` float32 [positions, d]: rotary cosines and sines."""

    embedding: Embedding
    layers: tuple[GpuLayer, ...]
    head_norm_weight: torch.Tensor
    head: Weight
    cos_sin: torch.Tensor

    @classmethod
    def place(
        cls,
        config: ModelConfig,
        tensors: Mapping[str, torch.Tensor],
        quantization: Quantization,
        dtype: torch.dtype,
        device: torch.device,
        on_layer: Callable[[], None] = lambda: None,
    ) -> Self:
        """Move tensors that `float_packing` made for GPUs to `device`, a layer at a time.

        Matrices in a form of the file keep it. An unquantized embedding is in `dtype`, like a head
        that shares it in quantization `float`. All else is packed in `quantization`. An embedding
        that is not also the head stays on the host, see `Embedding`.
        """
        source = _Source(tensors, dtype, device)
        layers = []
        for index in range(config.num_layers):
            layers.append(_place_layer(config, f"layers.{index}", source, quantization))
            on_layer()
        embedding, head = _place_ends(config, source, head_quantization(quantization))
        return cls(
            embedding=embedding,
            layers=tuple(layers),
            head_norm_weight=source.tensor("head.norm").float(),
            head=head,
            cos_sin=_cos_sin(config).to(device),
        )

    @property
    def matrices(self) -> list[Weight]:
        """Return the matrices of all layers."""
        return [matrix for layer in self.layers for matrix in layer.matrices]

    @property
    def dtype_name(self) -> str:
        """Return the forms of the layers' matrices, largest share first: `q4_k+q6_k`."""
        sizes: Counter[str] = Counter()
        for matrix in self.matrices:
            name = str(matrix.values.dtype).removeprefix("torch.")
            form = name if matrix.quantization == "float" else matrix.quantization
            sizes[_SHOWN.get(form, form)] += matrix.num_bytes
        return "+".join(name for name, _ in sizes.most_common())

    @property
    def next_norm_weights(self) -> tuple[torch.Tensor, ...]:
        """Return the norm weights after each layer: the next layer's or the head's."""
        return (*(layer.qkv_norm_weight for layer in self.layers[1:]), self.head_norm_weight)

    @property
    def read_bytes(self) -> int:
        """Return the bytes that a step reads: all but the embedding, of which it reads few rows."""
        return sum(matrix.num_bytes for matrix in (*self.matrices, self.head))


def _place_ends(
    config: ModelConfig, source: "_Source", head_form: Quantization
) -> tuple[Embedding, Weight]:
    on_host = replace(source, device=torch.device("cpu")).weight("embedding", "float")
    if not config.tie_word_embeddings:
        return Embedding.on_host(on_host), source.weight("head", head_form)
    if on_host.quantization == "float" and head_form != "float":
        head = pack(on_host.values.to(source.device), head_form)
        return Embedding.on_host(on_host), head
    shared = source.weight("embedding", "float")
    return Embedding(shared, is_on_host=False), shared


def head_quantization(quantization: Quantization) -> Quantization:
    """Return the head's quantization: at least 8 bits, as it decides between close tokens."""
    return "fp8" if quantization == "int4" else quantization


@dataclass(frozen=True, slots=True)
class _Source:
    """Tensors made by `float_packing`, moved to a device on access."""

    tensors: Mapping[str, torch.Tensor]
    dtype: torch.dtype
    device: torch.device

    def tensor(self, name: str) -> torch.Tensor:
        return self.tensors[name].to(self.device)

    def weight(
        self, name: str, quantization: Quantization, order: Arrange = lambda matrix: matrix
    ) -> Weight:
        """Return a matrix in its own form, if it has one, with its outputs in `order`."""
        for form in STORED_FORMS:
            if f"{name}.{form}.values" in self.tensors:
                parts = (self.tensor(f"{name}.{form}.{part}") for part in ("values", "scales"))
                return Weight(form, *parts).reordered(order)
        whole = self.tensor(name if name == "embedding" else f"{name}.weight")
        return pack(order(whole.to(self.dtype)), quantization)


def _place_layer(
    config: ModelConfig, name: str, source: _Source, quantization: Quantization
) -> GpuLayer:
    qkv_size = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim

    paired = partial(pair_rotated, config)
    norm = source.tensor(f"{name}.qkv.norm").float()
    # Without a bias, the kernel adds zeros: a branch would mean another kernel to compile.
    bias = (
        source.tensor(f"{name}.qkv.bias").float() if config.qkv_bias else norm.new_zeros(qkv_size)
    )
    return GpuLayer(
        qkv_norm_weight=norm,
        qkv=source.weight(f"{name}.qkv", quantization, paired),
        qkv_bias=paired(bias[:, None])[:, 0].contiguous(),
        o=source.weight(f"{name}.o", quantization),
        gate_up_norm_weight=source.tensor(f"{name}.gate_up.norm").float(),
        gate_up=source.weight(f"{name}.gate_up", quantization, pair_gates),
        down=source.weight(f"{name}.down", quantization),
    )


def pair_rotated(config: ModelConfig, matrix: torch.Tensor) -> torch.Tensor:
    """In each head of queries and keys, put output i + d/2 after output i. [outputs, inputs].

    The rotary embedding rotates these two together, so the kernel needs them side by side.
    """
    d = config.head_dim
    count = (config.num_heads + config.num_kv_heads) * d
    halves = matrix[:count].view(-1, 2, d // 2, matrix.shape[1])
    return torch.cat([halves.transpose(1, 2).reshape(count, -1), matrix[count:]])


def pair_gates(matrix: torch.Tensor) -> torch.Tensor:
    """Interleave the outputs of `gate` and `up`. [2 I, inputs], all gates first in `matrix`."""
    return matrix.view(2, -1, matrix.shape[1]).transpose(0, 1).reshape(matrix.shape)


def _cos_sin(config: ModelConfig) -> torch.Tensor:
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    places = torch.arange(config.max_position, dtype=torch.float64)
    angles = torch.outer(places, config.rope_theta**-steps)
    return torch.cat([angles.cos(), angles.sin()], dim=1).float()
