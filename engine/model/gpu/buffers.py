"""The fixed memory of one shape of a step: what goes in and what comes out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from engine.model.causal_lm import NUM_TOP, StepInput
from engine.model.gpu.batch_layout import BatchLayout, PackedRows, aligned
from engine.model.sampling import noise_keys
from kernels.acceptance_walk import AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import SamplingNoise


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a captured step is for. Steps without a head fill the cache and answer nothing."""

    rows: int
    sequences: int
    has_head: bool = True
    is_sampled: bool = False
    has_logits: bool = False


class Inputs:
    """What the host writes: the batch and the noise of its rows, as one copy of int32."""

    def __init__(self, shape: StepShape, group: int, device: torch.device) -> None:
        self._layout = BatchLayout(shape.rows, shape.sequences, group)
        rows, start = shape.rows, self._layout.size
        sizes = {"logit_scales": rows, "noise_scales": rows, "keys": 2 * rows}
        size = start + sum(map(aligned, sizes.values()))
        self._host = torch.zeros(size, dtype=torch.int32, pin_memory=device.type == "cuda")
        self._device = torch.zeros(size, dtype=torch.int32, device=device)
        array = self._host.numpy()
        self.batch: BatchMetadata = self._layout.batch(self._device)
        parts = self._device[start:].split([aligned(count) for count in sizes.values()])
        self.noise = SamplingNoise(
            logit_scales=parts[0][:rows].view(torch.float32),
            noise_scales=parts[1][:rows].view(torch.float32),
            keys=parts[2][: 2 * rows].view(rows, 2),
        )
        places = np.split(array[start:], np.cumsum([len(part) for part in parts])[:-1])
        self.logit_scales, self.noise_scales = (
            place[:rows].view(np.float32) for place in places[:2]
        )
        self.keys: np.ndarray = places[2][: 2 * rows].reshape(rows, 2)
        self._arrays = self._layout.arrays(array)
        self.pack([])

    def pack(self, steps: Sequence[StepInput]) -> list[PackedRows]:
        """Write the trees of a forward and how their rows draw. Raises ValueError beyond its shape."""
        packed = self._layout.pack(self._arrays, steps)
        for step, (first_row, order) in zip(steps, packed, strict=True):
            self._set_noise(step, slice(first_row, first_row + len(order)), order)
        return packed

    def _set_noise(self, step: StepInput, rows: slice, order: np.ndarray) -> None:
        """A forward without noise does not look at it."""
        temperature = step.sampling.temperature
        self.logit_scales[rows] = 1.0 / temperature if temperature else 1.0
        self.noise_scales[rows] = 1.0 if temperature else 0.0
        if temperature:
            positions = step.slot.length + 1 + step.tree.depths[order]
            self.keys[rows] = noise_keys(step.sampling.seed, positions)

    def upload(self) -> None:
        """Copy to the device; a captured step does it itself."""
        self._device.copy_(self._host, non_blocking=True)


class HostOutput(NamedTuple):
    """An `AcceptanceOutput` on the host."""

    chosen: np.ndarray
    margins: np.ndarray
    top: np.ndarray
    accepted: np.ndarray
    path: np.ndarray


class Outputs:
    """What the host reads, as one copy of int32."""

    def __init__(self, shape: StepShape, device: torch.device) -> None:
        rows, sequences = shape.rows, shape.sequences
        self._sizes = [rows, rows, NUM_TOP * rows, sequences, sequences * rows]
        size = sum(map(aligned, self._sizes))
        self._device = torch.zeros(size, dtype=torch.int32, device=device)
        self._host = torch.zeros(size, dtype=torch.int32, pin_memory=device.type == "cuda")
        self.acceptance = self._acceptance(self._device, rows, sequences)
        host = self._acceptance(self._host, rows, sequences)
        self.host = HostOutput(
            chosen=host.chosen.numpy(),
            margins=host.margins.numpy(),
            top=host.top.numpy(),
            accepted=host.accepted.numpy(),
            path=host.path.numpy(),
        )

    def download(self) -> None:
        """Copy to the host; there once the device has come so far."""
        self._host.copy_(self._device, non_blocking=True)

    def _acceptance(self, buffer: torch.Tensor, rows: int, sequences: int) -> AcceptanceOutput:
        parts = buffer.split([aligned(size) for size in self._sizes])
        chosen, margins, top, accepted, path = (
            part[:size] for part, size in zip(parts, self._sizes, strict=True)
        )
        return AcceptanceOutput(
            chosen=chosen,
            margins=margins.view(torch.float32),
            top=top.view(rows, NUM_TOP),
            accepted=accepted,
            path=path.view(sequences, rows),
        )
