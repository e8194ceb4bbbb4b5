"""The check of a device that has no kernels of ours: whether PyTorch is right there, and how fast."""

from dataclasses import dataclass, replace
from functools import partial

import torch

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.run import GpuBench, Section
from engine.bench.gpu.shapes import (
    RandomTensors,
    Shape,
    drafted_tree,
    random_arena,
    random_weights,
)
from engine.model.causal_lm import StepInput, run_step
from engine.model.device import free_bytes
from engine.model.gpu.arena import KVArena
from engine.model.gpu.loading import assemble
from engine.model.gpu.memory_plan import MemoryPlan
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.row_check import EQUAL, check_rows
from engine.model.gpu.weights import GpuWeights
from kernels.operations import PORTABLE

_POSITIONS, _CONTEXT, _ROWS = 5120, 512, 16


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """`error` is the largest difference from float32, in standard deviations of the logits."""

    model: str
    error: float
    drafts_change_text: bool
    ms_of_16_rows: float
    ms_of_128_rows: float


class PortableCheck(GpuBench):
    """The check alone, in place of the benchmark's sections."""

    def sections(self) -> list[Section]:
        """One for each shape."""
        return [
            Section(f"pytorch_{shape.name}", partial(check_pytorch, shape=shape))
            for shape in self._inputs.shapes
        ]


def check_pytorch(lab: Lab, shape: Shape) -> Cases[CheckedModel]:
    """Check and time a model of this shape with random weights. Raises NoSpaceError."""
    if lab.machine.device.type != "cpu":
        MemoryPlan.make(shape.config, "float", free_bytes(lab.machine.device), None)
    error = _error(lab, shape)
    weights = random_weights(shape, lab.machine)
    arena = random_arena(shape.config, _POSITIONS, lab.machine)
    model = assemble(shape.config, weights, arena, lab.machine.dtype, PORTABLE)
    found = check_rows(model, _POSITIONS)
    few, many = (_step_ms(lab, model, rows) for rows in model.row_buckets)
    case = CheckedModel(shape.name, error, found != EQUAL, few, many)
    return Cases((case,), (f"{shape.name}: {found}",))


def _error(lab: Lab, shape: Shape) -> float:
    config, machine = shape.shallow.config, lab.machine
    tensors, cache = dict(RandomTensors(config, machine)), random_arena(config, _POSITIONS, machine)
    logits = []
    for dtype in (torch.float32, machine.dtype):
        weights = GpuWeights.place(config, tensors, "float", dtype, machine.device)
        arena = KVArena(config, _POSITIONS, dtype, machine.device)
        arena.keys.copy_(cache.keys)
        arena.values.copy_(cache.values)
        logits.append(_logits(assemble(config, weights, arena, dtype, PORTABLE)))
    expected, actual = logits
    return float((actual - expected).abs().max() / expected.std())


def _logits(model: GpuQwen2) -> torch.Tensor:
    logits = run_step(model, replace(_step(model, _ROWS), wants_logits=True)).logits
    if logits is None:
        raise ValueError("a step that was asked for logits has none")
    return logits


def _step_ms(lab: Lab, model: GpuQwen2, rows: int) -> float:
    step = _step(model, rows)
    return lab.machine.ms(lambda: run_step(model, step))


def _step(model: GpuQwen2, rows: int) -> StepInput:
    """Drafts behind random keys and values."""
    slot = model.new_slot(_CONTEXT + rows)
    slot.length = _CONTEXT
    return StepInput(slot, drafted_tree(rows))
