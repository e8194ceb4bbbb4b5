"""Steps of a model whose tensors have shapes and types, but take no memory.

Launching them under `launch_compiler` compiles the kernels of the real steps.
"""

from dataclasses import replace

import torch

from engine.model.gpu.arena import KVArena
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.embedding import Embedding
from engine.model.gpu.forward import Activations, Forward, StepMemory
from engine.model.gpu.weights import GpuLayer, GpuWeights, head_quantization
from engine.model.model_config import ModelConfig
from kernels.operations import operations_for
from kernels.scratch import Scratch
from kernels.weight import INT4_GROUP, VALUES_OF_INPUT, Quantization, Weight
from tests.support.block_weights import WORDS, scales_shape

_POSITIONS = 4096  # positions of a cache; all multiples of 16 compile alike
_PLENTY = 1 << 40  # numbers of working memory
_CPU = torch.device("cpu")


def empty_forward(
    config: ModelConfig, quantization: Quantization, *, programmatic: bool = False
) -> Forward:
    """Return one layer of a model and its head, by the Triton kernels."""
    arena = KVArena(replace(config, num_layers=1), _POSITIONS, torch.bfloat16, _CPU)
    return Forward(
        config=config,
        weights=_weights(config, quantization),
        arena=arena,
        operations=operations_for(torch.device("cuda"), programmatic=programmatic),
        scratch=Scratch(nothing(_PLENTY), nothing(_PLENTY, dtype=torch.int32)),
    )


def empty_memory(config: ModelConfig, shape: StepShape) -> StepMemory:
    return StepMemory(
        shape=shape,
        inputs=Inputs(shape, config.num_heads // config.num_kv_heads, _CPU, _embedding(config)),
        activations=Activations(config, shape.rows, torch.bfloat16, _CPU),
        outputs=Outputs(shape, _CPU),
        logits=nothing(shape.rows, config.vocab_size) if shape.has_logits else None,
    )


def nothing(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor of any shape that holds only one number."""
    return torch.empty(1, dtype=dtype).expand(shape)


def empty_weight(outputs: int, inputs: int, quantization: Quantization) -> Weight:
    """Return a matrix of this form, or of eight bits if its inputs fill no blocks, as in files."""
    if quantization in WORDS and inputs % 256:
        quantization = "q8_0"
    if quantization == "float":
        return Weight(quantization, nothing(outputs, inputs, dtype=torch.bfloat16), None)
    if quantization == "fp8":
        codes = nothing(outputs, inputs, dtype=torch.float8_e4m3fn)
        return Weight(quantization, codes, nothing(outputs))
    width = int(inputs * VALUES_OF_INPUT.get(quantization, 1))
    codes = nothing(outputs, width, dtype=torch.int8 if quantization == "q8_0" else torch.uint8)
    if quantization == "int4":
        return Weight(quantization, codes, nothing(inputs // INT4_GROUP, outputs))
    shape = scales_shape(outputs, inputs, quantization)
    return Weight(quantization, codes, nothing(*shape, dtype=torch.int32))


def _embedding(config: ModelConfig) -> Embedding:
    return Embedding(empty_weight(config.vocab_size, config.hidden_size, "float"), is_on_host=False)


def _weights(config: ModelConfig, quantization: Quantization) -> GpuWeights:
    hidden, inter = config.hidden_size, config.intermediate_size
    heads = config.num_heads * config.head_dim
    qkv = heads + 2 * config.num_kv_heads * config.head_dim
    layer = GpuLayer(
        qkv_norm_weight=nothing(hidden),
        qkv=empty_weight(qkv, hidden, quantization),
        qkv_bias=nothing(qkv),
        o=empty_weight(hidden, heads, quantization),
        gate_up_norm_weight=nothing(hidden),
        gate_up=empty_weight(2 * inter, hidden, quantization),
        down=empty_weight(hidden, inter, quantization),
    )
    return GpuWeights(
        embedding=_embedding(config),
        layers=(layer,),
        head_norm_weight=nothing(hidden),
        head=empty_weight(config.vocab_size, hidden, head_quantization(quantization)),
        cos_sin=nothing(config.max_position, config.head_dim),
    )
