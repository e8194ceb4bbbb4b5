"""Run steps of several sequences on a GPU. As many as fit share a launch."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from engine.model.causal_lm import StepInput, StepOutput
from engine.model.gpu.batch_layout import PackedRows
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.launches import Launch
from engine.model.gpu.step_graphs import StepGraphs, StepSizes, bucket
from engine.model.sampling import choose, log_probs
from engine.model.token_tree import verify


class _Launched(NamedTuple):
    launch: Launch
    steps: Sequence[StepInput]
    packed: Sequence[PackedRows]
    began: float


@dataclass(slots=True)
class GpuFlight:
    """A `Flight`. Methods that use the device raise DeviceLostError if it is lost."""

    graphs: StepGraphs
    steps: Sequence[StepInput]
    _launched: list[_Launched] = field(default_factory=list)
    _outputs: dict[StepInput, StepOutput] = field(default_factory=dict)

    def start(self) -> None:
        """Launch all steps; a launch waits while its memory is in use."""
        with self.graphs.watched():
            for steps in _launches(self.steps, self.graphs.sizes):
                self._launch(steps)

    def finish(self) -> list[StepOutput | None]:
        """Wait for the outputs, unless all steps were dropped: then they finish unattended."""
        if all(step.is_dropped for step in self.steps):
            self._launched = [one._replace(steps=(), packed=()) for one in self._launched]
        else:
            self.wait()
        outputs = [None if step.is_dropped else self._outputs.get(step) for step in self.steps]
        self.steps, self._outputs = (), {}  # unreferenced slots free their memory
        return outputs

    def wait(self) -> None:
        """Wait until the device has finished all launches."""
        with self.graphs.watched():
            while self._launched:
                self._fetch(self._launched.pop(0))

    def _launch(self, steps: Sequence[StepInput]) -> None:
        shape = _shape(steps, self.graphs.sizes)
        # Wait before making a launch: making it runs it once, and all shapes share the logits.
        if any(_share_memory(one.launch.memory.shape, shape) for one in self._launched):
            self.wait()
        launch = self.graphs.launch(shape)
        packed = launch.memory.inputs.pack(steps)
        began = time.perf_counter()
        launch.start()
        for step, rows in zip(steps, packed, strict=True):
            step.slot.launched(rows.order)
        self._launched.append(_Launched(launch, steps, packed, began))

    def _fetch(self, launched: _Launched) -> None:
        launched.launch.wait()
        ms = 1000 * (time.perf_counter() - launched.began)
        for index, step in enumerate(launched.steps):
            if step.has_head and not step.is_dropped:
                self._outputs[step] = _output(launched, index, ms)


def _share_memory(one: StepShape, other: StepShape) -> bool:
    """Whether a step of one shape must wait until the other's outputs are fetched."""
    return one == other or (one.has_logits and other.has_logits)


def _launches(steps: Sequence[StepInput], sizes: StepSizes) -> Iterator[Sequence[StepInput]]:
    """Group the steps with a head as far as they fit; each of the others runs alone."""
    together: list[StepInput] = []
    for step in steps:
        if not step.has_head:
            continue
        rows = sum(other.tree.num_rows for other in together) + step.tree.num_rows
        if together and (rows > sizes.most_rows or len(together) == sizes.sequences[-1]):
            yield together
            together = []
        together.append(step)
    if together:
        yield together
    yield from ([step] for step in steps if not step.has_head)


def _shape(steps: Sequence[StepInput], sizes: StepSizes) -> StepShape:
    buckets = sizes.rows if steps[0].has_head else sizes.read_rows
    return StepShape(
        rows=bucket(buckets, sum(step.tree.num_rows for step in steps)),
        sequences=bucket(sizes.sequences, len(steps)),
        has_head=steps[0].has_head,
        is_sampled=any(step.has_head and step.sampling.temperature > 0 for step in steps),
        has_logits=any(step.wants_logits or _allowed(step) for step in steps),
    )


def _allowed(step: StepInput) -> dict[int, np.ndarray]:
    """Return the ids that a constraint allows, by row."""
    return {row: ids for row, ids in enumerate(step.allowed or ()) if ids is not None}


def _output(launched: _Launched, index: int, ms: float) -> StepOutput:
    """Copy a sequence's outputs from the shared memory, with rows in the order of its tree."""
    step, (first_row, order) = launched.steps[index], launched.packed[index]
    host = launched.launch.memory.outputs.arrays
    rows = first_row + step.slot.places
    chosen, found = host["chosen"][rows].astype(np.int64), host["log_probs"][rows]
    top = host["top"][rows].astype(np.int64)
    path = order[host["path"][index, : int(host["accepted"][index])]]
    if allowed := _allowed(step):
        _choose_constrained(step, _logits(launched, rows[list(allowed)]), chosen, found)
        path = verify(step.tree.token_ids, step.tree.parents, chosen)
    return StepOutput(
        chosen=chosen,
        path=path,
        log_probs=found,
        top_tokens=lambda: top,
        ms=ms,
        step_rows=sum(other.tree.num_rows for other in launched.steps),
        logits=_logits(launched, rows) if step.wants_logits else None,
    )


def _choose_constrained(
    step: StepInput, logits: np.ndarray, chosen: np.ndarray, found: np.ndarray
) -> None:
    """Overwrite the choices and log-probs `found` of constrained rows: the device ignores those."""
    allowed = _allowed(step)
    rows, ids = list(allowed), list(allowed.values())
    positions = step.slot.length + 1 + step.tree.depths[rows]
    chosen[rows] = choose(logits, positions, step.sampling, ids)
    found[rows] = log_probs(logits, np.arange(len(rows)), chosen[rows], ids)


def _logits(launched: _Launched, rows: np.ndarray) -> np.ndarray:
    """Return the logits, float32 [len(rows), vocab]."""
    held = launched.launch.memory.logits
    if held is None:
        raise ValueError("a step of this shape leaves no logits")
    logits: np.ndarray = held[torch.from_numpy(rows).to(held.device)].cpu().numpy()
    return logits
