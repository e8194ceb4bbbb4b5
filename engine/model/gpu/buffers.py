"""The fixed memory of one shape of a step: what goes in and what comes out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from engine.model.causal_lm import NUM_TOP, StepInput
from engine.model.gpu.batch_layout import BatchLayout, PackedRows
from engine.model.gpu.embedding import Embedding, Lookup
from engine.model.sampling import noise_keys
from kernels.acceptance_walk import AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.lm_head import SamplingNoise
from kernels.step_rows import StepRows

_ALIGNED_BYTES = 16  # kernels load so many at a time where an array starts so
_WORD = 4  # bytes of a number in the shared memory
_FLOATS = {"logit_scales", "noise_scales", "log_probs"}


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a captured step is for. Steps without a head fill the cache and answer nothing."""

    rows: int
    sequences: int
    has_head: bool = True
    is_sampled: bool = False
    has_logits: bool = False


class SharedBuffer:
    """Arrays on the host and tensors on the device, by name, all of which one copy brings over.

    Each begins where kernels load 16 bytes at a time. They are int32, those of `_FLOATS` float32, and
    others as the `types` say. `host_tensors` are the arrays, and those that NumPy has no type for.
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        device: torch.device,
        types: Mapping[str, torch.dtype] | None = None,
        *,
        is_captured: bool,
    ) -> None:
        """Of what is captured, copies start by themselves; other devices copy as they are asked."""
        types = dict.fromkeys(_FLOATS, torch.float32) | dict(types or {})
        kinds = {name: types.get(name, torch.int32) for name in shapes}
        sizes = {name: math.prod(shape) * kinds[name].itemsize for name, shape in shapes.items()}
        lengths = [-(-size // _ALIGNED_BYTES) * _ALIGNED_BYTES // _WORD for size in sizes.values()]
        size = sum(lengths)
        self._is_pinned = is_captured and device.type == "cuda"
        self._host = torch.zeros(size, dtype=torch.int32, pin_memory=self._is_pinned)
        self._device = torch.zeros(size, dtype=torch.int32, device=device)
        starts = dict(zip(shapes, accumulate(lengths, initial=0), strict=False))

        def part(buffer: torch.Tensor, name: str) -> torch.Tensor:
            words = buffer[starts[name] :][: -(-sizes[name] // _WORD)]
            return words.view(kinds[name])[: math.prod(shapes[name])].view(shapes[name])

        self.host_tensors = {name: part(self._host, name) for name in shapes}
        self.arrays = {
            name: values.numpy()
            for name, values in self.host_tensors.items()
            if values.dtype != torch.bfloat16
        }
        self.tensors = {name: part(self._device, name) for name in shapes}

    def upload(self) -> None:
        """Copy to the device; a captured step does it itself."""
        self._device.copy_(self._host, non_blocking=self._is_pinned)

    def download(self) -> None:
        """Copy to the host; there once the device has come so far."""
        self._host.copy_(self._device, non_blocking=self._is_pinned)


class Inputs(SharedBuffer):
    """What the host writes: the batch, the noise of its rows, and perhaps their embeddings."""

    def __init__(
        self,
        shape: StepShape,
        group: int,
        device: torch.device,
        hosted: Embedding | None = None,
        *,
        is_captured: bool = True,
    ) -> None:
        """`hosted` is an embedding on the host, whose rows go up with the rest."""
        self._layout = BatchLayout(shape.rows, shape.sequences, group)
        scales, keys = (shape.rows,), (shape.rows, 2)
        noise = {"logit_scales": scales, "noise_scales": scales, "keys": keys}
        sent = {} if hosted is None else hosted.sent(shape.rows)
        types = {} if hosted is None else hosted.sent_types
        shapes = self._layout.shapes | noise | sent
        super().__init__(shapes, device, types, is_captured=is_captured)
        self._hosted = hosted
        if hosted is not None:
            places = torch.arange(shape.rows, dtype=torch.int32, device=device)
            self._arrived = Lookup(places, hosted.arrived(self.tensors))
        batch: dict[str, Any] = {name: self.tensors[name] for name in self._layout.shapes}
        self.batch = BatchMetadata(**batch)
        self.noise = SamplingNoise(**{name: self.tensors[name] for name in noise})
        self._plans_rows = not is_captured
        self.pack([])

    def pack(self, steps: Sequence[StepInput]) -> list[PackedRows]:
        """Write the trees of a forward and how their rows draw. Raises ValueError beyond its shape."""
        packed = self._layout.pack(self.arrays, steps)
        for step, (first_row, order) in zip(steps, packed, strict=True):
            rows = slice(first_row, first_row + len(order))
            self._set_noise(step, rows, order)
            if self._hosted is not None:
                self._hosted.send(self.arrays["tokens"][rows], self.host_tensors, rows)
        if self._plans_rows:
            step_rows = StepRows.plan(self.arrays, self._device.device)
            self.batch = replace(self.batch, step_rows=step_rows)
        return packed

    def lookup(self, embedding: Embedding) -> Lookup:
        """Where the embeddings of its rows are."""
        if self._hosted is None:
            return Lookup(self.batch.tokens, embedding.table)
        return self._arrived

    def _set_noise(self, step: StepInput, rows: slice, order: np.ndarray) -> None:
        """A forward without noise does not look at it."""
        temperature = step.sampling.temperature
        self.arrays["logit_scales"][rows] = 1.0 / temperature if temperature else 1.0
        self.arrays["noise_scales"][rows] = 1.0 if temperature else 0.0
        if temperature:
            positions = step.slot.length + 1 + step.tree.depths[order]
            self.arrays["keys"][rows] = noise_keys(step.sampling.seed, positions)


class Outputs(SharedBuffer):
    """What the host reads: an `AcceptanceOutput`, whose `arrays` are on the host."""

    def __init__(self, shape: StepShape, device: torch.device, *, is_captured: bool = True) -> None:
        rows, sequences = shape.rows, shape.sequences
        per_row = {"chosen": (rows,), "log_probs": (rows,), "top": (rows, NUM_TOP)}
        shapes = per_row | {"accepted": (sequences,), "path": (sequences, rows)}
        super().__init__(shapes, device, is_captured=is_captured)
        self.acceptance = AcceptanceOutput(**self.tensors)
