"""Brings a converted model to a device and captures its steps."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from engine.config import Sampling
from engine.errors import ConfigurationError, NoSpaceError
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.device import DeviceUnfitError, free_bytes, made_current
from engine.model.gpu.arena import KVArena
from engine.model.gpu.forward import Forward
from engine.model.gpu.launches import is_of_memory
from engine.model.gpu.memory_plan import MemoryPlan, most_blocks, weight_bytes
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.rows import check_rows
from engine.model.gpu.step_graphs import READ_BUCKETS, StepGraphs, warm_up
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.packing import FILE_FORMS
from engine.model.model_config import ModelConfig
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.progress import Progress, shown
from kernels.batch_attention import scratch_size as attention_scratch
from kernels.operations import PORTABLE, Operations, operations_for
from kernels.product.tiles import scratch_size as product_scratch
from kernels.scratch import Scratch
from kernels.weight import INT4_GROUP, Quantization


def load_qwen2(
    model: ConvertedModel,
    device: torch.device,
    quantization: Quantization,
    kv_bytes: int | None,
    progress: Progress,
    cache_folder: Path,
) -> GpuQwen2:
    """Load a model, check its kernels if it is new here, and capture its steps.

    It is of the variant `bfloat16`, or in its file's own form.

    Raises NoSpaceError where it does not fit, mostly before anything is loaded, and
    ConfigurationError where the model has widths that the quantization cannot hold.
    """
    require_widths(model.config, quantization)
    is_file = model.quantization == FILE_FORMS
    weights = held_file_bytes(model) if is_file else weight_bytes(model.config, quantization)
    plan = MemoryPlan.make(model.config, weights, free_bytes(device), kv_bytes)
    progress.tell(f"GPU memory: {plan}")
    with _within(plan), made_current(device):
        loaded = place_qwen2(
            model.config,
            model.tensors(),
            quantization,
            plan.positions,
            device,
            progress,
        )
        loaded, _ = settle(loaded, cache_folder, progress)
        warm_up(loaded.graphs, progress)
        if is_of_memory(loaded.graphs.note):  # a host beside it may have taken the room
            raise RuntimeError(loaded.graphs.note)
    return loaded


def held_file_bytes(model: ConvertedModel) -> int:
    """What a GPU holds of weights in the form of their file: an embedding of its own stays behind."""
    stays = () if model.config.tie_word_embeddings else ("embedding",)
    held = (one for name, one in model.tensors().items() if not name.startswith(stays))
    return sum(tensor.nbytes for tensor in held)


def load_portable(
    model: ConvertedModel, device: torch.device, kv_bytes: int | None, progress: Progress
) -> GpuQwen2:
    """Load a model of the variant `bfloat16` to be run by PyTorch, and try it out.

    Raises NoSpaceError where it does not fit, and DeviceUnfitError where torch cannot run it.
    """
    weights = weight_bytes(model.config, "float")
    plan = MemoryPlan.make(model.config, weights, free_bytes(device), kv_bytes)
    progress.tell(f"GPU memory: {plan}")
    try:
        with _within(plan), made_current(device):
            loaded = place_qwen2(
                model.config,
                model.tensors(),
                "float",
                plan.positions,
                device,
                progress,
                operations=PORTABLE,
            )
            try_out(loaded)
            loaded.found = check_rows(loaded)
    except (RuntimeError, TypeError) as error:  # what a device lacks has many names
        reason = str(error).partition("\n")[0]
        raise DeviceUnfitError(f"torch cannot run the model on {device}: {reason}") from error
    return loaded


def try_out(model: GpuQwen2) -> None:
    """Run a step of each kind, so that no request waits for what is compiled at its first."""
    tree = TokenTree(np.zeros(3, np.int64), np.array([-1, 0, 0], np.int32))
    slot = model.new_slot(2 * MAX_ROWS)
    prefill(model, slot, [0] * 3)
    for sampling in (Sampling(), Sampling(temperature=1.0)):
        for wants_logits in (False, True):
            run_step(model, StepInput(slot, tree, sampling, wants_logits=wants_logits))
            slot.commit([0, 2])  # not the first branch: the next step moves what it keeps
    run_step(model, StepInput(slot, tree))


def require_widths(config: ModelConfig, quantization: Quantization) -> None:
    """Raise ConfigurationError where a layer has no whole groups of inputs."""
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
    """Hold the tensors of `packing`'s float variants in `quantization`, with a cache of `positions`."""
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
    """Join weights and cache, on the device where they are."""
    device = arena.keys.device
    operations = operations or operations_for(device)
    forward = Forward(
        config=config,
        weights=weights,
        arena=arena,
        operations=operations,
        scratch=Scratch.allocate(0, 0, device)
        if operations.asks_host
        else _scratch(config, weights, device),
    )
    return GpuQwen2(StepGraphs(forward, dtype, device), weights.dtype_name)


@contextmanager
def _within(plan: MemoryPlan) -> Iterator[None]:
    """Say what was planned where the memory runs out all the same. Raises NoSpaceError."""
    try:
        yield
    except RuntimeError as error:
        # A graph or a kernel that finds no room says so in CUDA's words, under other names.
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error):
            raise
        raise NoSpaceError(
            f"the GPU's memory ran out while the model was loaded, though it had been enough: {plan}; "
            "see in nvidia-smi what else takes of it; `foregram stop` lets it be tried anew"
        ) from error


def _scratch(config: ModelConfig, weights: GpuWeights, device: torch.device) -> Scratch:
    """Take what the greediest kernel of any shape needs; one runs at a time."""
    sizes = [attention_scratch(most_blocks(config), config.num_kv_heads, config.head_dim)]
    matrices = [matrix for layer in weights.layers for matrix in layer.matrices]
    for weight in (*matrices, weights.head):  # a file may hold layers in several forms
        sizes += [product_scratch(weight, rows) for rows in READ_BUCKETS]
    return Scratch.allocate(
        max(size.num_partials for size in sizes),
        max(size.num_counters for size in sizes),
        device,
    )
