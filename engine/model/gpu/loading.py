"""Put a converted model on a device and capture its steps."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import torch

from engine.config import Sampling
from engine.errors import ConfigurationError, NoSpaceError
from engine.model.accelerators import free_bytes, made_current
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.device import DeviceChoice, DeviceUnfitError
from engine.model.gpu.arena import KVArena
from engine.model.gpu.forward import Forward
from engine.model.gpu.launches import is_of_memory
from engine.model.gpu.memory_plan import MemoryPlan, most_blocks, weight_bytes
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.step_graphs import READ_BUCKETS, StepGraphs, warm_up
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.converted_model import FILE_FORMS, ConvertedModel
from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.progress import Progress, shown
from kernels.batch_attention import scratch_size as attention_scratch
from kernels.operations import PORTABLE, Operations, operations_for
from kernels.product.tiles import scratch_size as product_scratch
from kernels.scratch import Scratch, ScratchSize
from kernels.weight import INT4_GROUP, Quantization


def load_qwen2(
    model: ConvertedModel,
    choice: DeviceChoice,
    quantization: Quantization,
    kv_bytes: int | None,
    progress: Progress,
    cache_folder: Path,
) -> GpuQwen2:
    """Load a model, check it at its first load, and prepare its steps.

    The model is stored as bfloat16 or in its file's form. Raises NoSpaceError if it does not fit,
    usually before loading, and ConfigurationError if the quantization cannot hold its widths.
    Without kernels, raises DeviceUnfitError if torch cannot run it.
    """
    require_widths(model.config, quantization)
    is_file = model.quantization == FILE_FORMS
    weights = held_file_bytes(model) if is_file else weight_bytes(model.config, quantization)
    device = torch.device(choice.device)
    plan = MemoryPlan.make(model.config, weights, free_bytes(device), kv_bytes)
    progress.tell(f"GPU memory: {plan}")
    given = (model.config, model.tensors(), quantization, plan.positions, device, progress)
    try:
        with made_current(device):
            placed = place_qwen2(*given, operations=None if choice.has_kernels else PORTABLE)
            loaded, _ = settle(placed, cache_folder, progress)
            make_ready(loaded, progress)
    except (RuntimeError, TypeError) as error:  # a device lacks a feature in one of many ways
        if is_of_memory(error):
            raise NoSpaceError(
                f"the GPU's memory ran out while the model was loaded, though it had been enough: {plan}; "
                "see in nvidia-smi what else takes of it; `foregram stop` lets it be tried anew"
            ) from error
        if choice.has_kernels:
            raise
        raise DeviceUnfitError(device, error) from error
    return loaded


def held_file_bytes(model: ConvertedModel) -> int:
    """Return the bytes of a file's weights on a GPU; an untied embedding stays on the host."""
    stays = () if model.config.tie_word_embeddings else ("embedding",)
    held = (one for name, one in model.tensors().items() if not name.startswith(stays))
    return sum(tensor.nbytes for tensor in held)


def make_ready(model: GpuQwen2, progress: Progress) -> None:
    """Compile and capture the steps, or run one of each kind by PyTorch, so that no request waits.

    Raises RuntimeError if memory runs out.
    """
    if not model.graphs.asks_host:
        warm_up(model.graphs, progress)
        if is_of_memory(model.graphs.note):  # another process may have taken the memory
            raise RuntimeError(model.graphs.note)
        return
    tree = TokenTree(np.zeros(3, np.int64), np.array([-1, 0, 0], np.int32))
    slot = model.new_slot(2 * MAX_ROWS)
    prefill(model, slot, [0] * 3)
    for temperature, wants_logits in product((0.0, 1.0), (False, True)):
        run_step(model, StepInput(slot, tree, Sampling(temperature), wants_logits=wants_logits))
        slot.commit([0, 2])  # not the first branch, so that the next step moves kept rows
    run_step(model, StepInput(slot, tree))


def require_widths(config: ModelConfig, quantization: Quantization) -> None:
    """Raise ConfigurationError if a layer's inputs do not form whole groups."""
    widths = (config.hidden_size, config.num_heads * config.head_dim, config.intermediate_size)
    odd = [width for width in widths if width % INT4_GROUP]
    if quantization == "int4" and odd:
        raise ConfigurationError(
            f"dtype int4 holds layers of multiples of {INT4_GROUP} inputs, and this model has one of "
            f"{odd[0]:,}; take dtype fp8"
        )


def place_qwen2(
    config: ModelConfig,
    tensors: Mapping[str, torch.Tensor],
    quantization: Quantization,
    positions: int,
    device: torch.device,
    progress: Progress,
    dtype: torch.dtype = torch.bfloat16,
    operations: Operations | None = None,
) -> GpuQwen2:
    """Place tensors of `float_packing`, with a cache of `positions` tokens."""
    with shown(progress, "placing the weights", config.num_layers):
        weights = GpuWeights.place(
            config, tensors, quantization, dtype, device, lambda: progress.advance(1)
        )
    arena = KVArena(config, positions, dtype, device)
    return assemble(config, weights, arena, dtype, operations)


def assemble(
    config: ModelConfig,
    weights: GpuWeights,
    arena: KVArena,
    dtype: torch.dtype,
    operations: Operations | None = None,
) -> GpuQwen2:
    """Make a model of weights and cache, on their device."""
    device = arena.keys.device
    operations = operations or operations_for(device)
    sizes = (0, 0) if operations.asks_host else _scratch_size(config, weights)
    forward = Forward(config, weights, arena, operations, Scratch.allocate(*sizes, device))
    return GpuQwen2(StepGraphs(forward, dtype, device), weights.dtype_name)


def _scratch_size(config: ModelConfig, weights: GpuWeights) -> ScratchSize:
    """Return the most that a kernel of any shape needs, since kernels run one at a time."""
    sizes = [attention_scratch(most_blocks(config), config.num_kv_heads, config.head_dim)]
    for weight in (*weights.matrices, weights.head):  # a file may hold layers in several forms
        sizes += [product_scratch(weight, rows) for rows in READ_BUCKETS]
    return ScratchSize(*map(max, zip(*sizes, strict=True)))
