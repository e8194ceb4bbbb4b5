"""Weights in the order and the quantization that the kernels of a step read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import torch

from engine.model.model_config import ModelConfig
from kernels.weight import Quantization, Weight, pack

Arrange = Callable[[torch.Tensor], torch.Tensor]  # brings a tensor to the device


@dataclass(frozen=True, slots=True)
class GpuLayer:
    """One layer. The norm weights are those before qkv and before gate and up."""

    qkv_norm_weight: torch.Tensor
    qkv: Weight
    qkv_bias: torch.Tensor
    o: Weight
    gate_up_norm_weight: torch.Tensor
    gate_up: Weight
    down: Weight


@dataclass(frozen=True, slots=True)
class GpuWeights:
    """All of a model. `cos_sin` float32 [places, d] are the rotary embedding's cosines and sines."""

    embedding: torch.Tensor
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
        """Bring the tensors of `packing`'s float variants to `device`, a layer at a time.

        The embedding, and with it a tied head in the quantization `float`, stays in `dtype`.
        """

        def placed(name: str) -> torch.Tensor:
            return tensors[name].to(device)

        layers = []
        for index in range(config.num_layers):
            layers.append(_place_layer(config, f"layers.{index}", placed, quantization, dtype))
            on_layer()
        embedding = placed("embedding").to(dtype)
        head = placed("head.weight").to(dtype) if "head.weight" in tensors else embedding
        return cls(
            embedding=embedding,
            layers=tuple(layers),
            head_norm_weight=placed("head.norm").float(),
            head=pack(head, head_quantization(quantization)),
            cos_sin=_cos_sin(config).to(device),
        )

    @property
    def read_bytes(self) -> int:
        """What one step has to read of them: all but the embedding, of which it reads rows."""
        matrices = [self.head]
        for layer in self.layers:
            matrices += [layer.qkv, layer.o, layer.gate_up, layer.down]
        return sum(matrix.num_bytes for matrix in matrices)


def head_quantization(quantization: Quantization) -> Quantization:
    """The head decides between tokens that are close: it keeps 8 bits where the rest has 4."""
    return "fp8" if quantization == "int4" else quantization


def _place_layer(
    config: ModelConfig,
    name: str,
    placed: Callable[[str], torch.Tensor],
    quantization: Quantization,
    dtype: torch.dtype,
) -> GpuLayer:
    qkv_size = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim

    def packed(part: str, order: Arrange = lambda matrix: matrix) -> Weight:
        return pack(order(placed(f"{name}.{part}.weight")).to(dtype), quantization)

    def paired(matrix: torch.Tensor) -> torch.Tensor:
        return pair_rotated(config, matrix)

    norm = placed(f"{name}.qkv.norm").float()
    # Where there is none, the kernel adds zeros: a branch of its own would be one more to compile.
    bias = placed(f"{name}.qkv.bias").float() if config.qkv_bias else norm.new_zeros(qkv_size)
    return GpuLayer(
        qkv_norm_weight=norm,
        qkv=packed("qkv", paired),
        qkv_bias=paired(bias[:, None])[:, 0].contiguous(),
        o=packed("o"),
        gate_up_norm_weight=placed(f"{name}.gate_up.norm").float(),
        gate_up=packed("gate_up", pair_gates),
        down=packed("down"),
    )


def pair_rotated(config: ModelConfig, matrix: torch.Tensor) -> torch.Tensor:
    """In each head of queries and keys, put output i + d/2 behind output i. [outputs, inputs].

    The rotary embedding rotates these two together, and a kernel wants them side by side.
    """
    d = config.head_dim
    count = (config.num_heads + config.num_kv_heads) * d
    halves = matrix[:count].view(-1, 2, d // 2, matrix.shape[1])
    return torch.cat([halves.transpose(1, 2).reshape(count, -1), matrix[count:]])


def pair_gates(matrix: torch.Tensor) -> torch.Tensor:
    """Put each output of `up` behind that of `gate`. [2 I, inputs], gates first."""
    return matrix.view(2, -1, matrix.shape[1]).transpose(0, 1).reshape(matrix.shape)


def _cos_sin(config: ModelConfig) -> torch.Tensor:
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    places = torch.arange(config.max_position, dtype=torch.float64)
    angles = torch.outer(places, config.rope_theta**-steps)
    return torch.cat([angles.cos(), angles.sin()], dim=1).float()
