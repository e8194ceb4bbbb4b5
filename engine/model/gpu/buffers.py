"""The fixed input and output memory of a step's shape."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from engine.model.causal_lm import NUM_TOP, StepInput
from engine.model.gpu.batch_layout import PackedRows, batch_shapes, pack
from engine.model.gpu.embedding import Embedding, Parts
from engine.model.sampling import noise_keys
from kernels.acceptance_walk import AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import SamplingNoise
from kernels.step_rows import StepRows

_ALIGNED_BYTES = 16  # aligned arrays let kernels load 16 bytes at a time
_WORD = 4  # bytes of a number in the shared memory


@dataclass(frozen=True, slots=True)
class StepShape:
    """The shape of a captured step. Steps without a head fill the cache and have no output."""

    rows: int
    sequences: int
    has_head: bool = True
    is_sampled: bool = False
    has_logits: bool = False


class SharedBuffer:
    """Arrays on the host and tensors on the device, by name, that one copy transfers together.

    Each is aligned to 16 bytes. `host_tensors` are the arrays and those without a NumPy type.
    """

    def __init__(self, parts: Parts, device: torch.device, *, is_captured: bool) -> None:
        """On CUDA, `is_captured` pins the host's memory, so that copies are asynchronous."""
        sizes = [math.prod(shape) * kind.itemsize for shape, kind in parts.values()]
        lengths = [-(-size // _ALIGNED_BYTES) * (_ALIGNED_BYTES // _WORD) for size in sizes]
        self._is_pinned = is_captured and device.type == "cuda"
        self._host = torch.zeros(sum(lengths), dtype=torch.int32, pin_memory=self._is_pinned)
        self._device = torch.zeros(sum(lengths), dtype=torch.int32, device=device)

        def cut(buffer: torch.Tensor) -> dict[str, torch.Tensor]:
            cuts = zip(parts.items(), buffer.split(lengths), strict=True)
            return {
                name: words.view(kind)[: math.prod(shape)].view(shape)
                for (name, (shape, kind)), words in cuts
            }

        self.host_tensors, self.tensors = cut(self._host), cut(self._device)
        self.arrays = {
            name: values.numpy()
            for name, values in self.host_tensors.items()
            if values.dtype != torch.bfloat16
        }

    def upload(self) -> None:
        """Copy to the device; captured steps include this copy."""
        self._device.copy_(self._host, non_blocking=self._is_pinned)

    def download(self) -> None:
        """Copy to the host; the data arrives when the device gets there."""
        self._host.copy_(self._device, non_blocking=self._is_pinned)


class Inputs(SharedBuffer):
    """Inputs that the host writes: the batch, its rows' noise, and perhaps their embeddings.

    `lookup` is where the step finds the embeddings.
    """

    def __init__(
        self,
        shape: StepShape,
        group: int,
        device: torch.device,
        embedding: Embedding,
        *,
        is_captured: bool = True,
    ) -> None:
        batch_parts = {
            name: (size, torch.int32)
            for name, size in batch_shapes(shape.rows, shape.sequences, group).items()
        }
        scales, keys = ((shape.rows,), torch.float32), ((shape.rows, 2), torch.int32)
        noise = {"logit_scales": scales, "noise_scales": scales, "keys": keys}
        sent = embedding.sent(shape.rows)
        super().__init__(batch_parts | noise | sent, device, is_captured=is_captured)
        self._embedding, self._group = embedding, group
        batch: dict[str, Any] = {name: self.tensors[name] for name in batch_parts}
        self.batch = BatchMetadata(**batch)
        self.noise = SamplingNoise(**{name: self.tensors[name] for name in noise})
        self.lookup = embedding.lookup(self.tensors, self.batch.tokens)
        self._plans_rows = not is_captured
        self.pack([])

    def pack(self, steps: Sequence[StepInput]) -> list[PackedRows]:
        """Write the trees and noise of a forward pass. Raises ValueError if they do not fit."""
        packed = pack(self.arrays, steps, self._group)
        for step, (first_row, order) in zip(steps, packed, strict=True):
            rows = slice(first_row, first_row + len(order))
            self._set_noise(step, rows, order)
            self._embedding.send(self.arrays["tokens"][rows], self.host_tensors, rows)
        if self._plans_rows:
            step_rows = StepRows.plan(self.arrays, self._device.device)
            self.batch = replace(self.batch, step_rows=step_rows)
        return packed

    def _set_noise(self, step: StepInput, rows: slice, order: np.ndarray) -> None:
        """Write the noise of a step's rows, which steps without sampling do not read."""
        temperature = step.sampling.temperature
        self.arrays["logit_scales"][rows] = 1.0 / temperature if temperature else 1.0
        self.arrays["noise_scales"][rows] = 1.0 if temperature else 0.0
        if temperature:
            positions = step.slot.length + 1 + step.tree.depths[order]
            self.arrays["keys"][rows] = noise_keys(step.sampling.seed, positions)


class Outputs(SharedBuffer):
    """Outputs that the host reads: an `AcceptanceOutput`, whose `arrays` are on the host."""

    def __init__(self, shape: StepShape, device: torch.device, *, is_captured: bool = True) -> None:
        rows, sequences = shape.rows, shape.sequences
        ids = {"chosen": (rows,), "top": (rows, NUM_TOP)}
        paths = {"accepted": (sequences,), "path": (sequences, rows)}
        parts = {name: (size, torch.int32) for name, size in (ids | paths).items()}
        parts["log_probs"] = ((rows,), torch.float32)
        super().__init__(parts, device, is_captured=is_captured)
        self.acceptance = AcceptanceOutput(**self.tensors)
