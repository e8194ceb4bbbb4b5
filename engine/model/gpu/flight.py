"""Steps of several sequences on a GPU: as many as fit share a launch, and their outputs come back."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from engine.model.causal_lm import StepInput, StepOutput
from engine.model.gpu.batch_layout import PackedRows
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.step_graphs import (
    ROW_BUCKETS,
    SEQUENCE_BUCKETS,
    Launch,
    StepGraphs,
    bucket,
)
from engine.model.sampling import choose
from engine.model.verify import verify


class _Launched(NamedTuple):
    """A launch whose outputs have not been fetched."""

    launch: Launch
    steps: Sequence[StepInput]
    packed: Sequence[PackedRows]
    began: float


@dataclass(slots=True)
class GpuFlight:
    """A `Flight`. Whatever asks the device raises DeviceLostError where that is lost."""

    graphs: StepGraphs
    steps: Sequence[StepInput]
    _launched: list[_Launched] = field(default_factory=list)
    _outputs: dict[StepInput, StepOutput] = field(default_factory=dict)

    def start(self) -> None:
        """Launch all steps; a launch on memory that is in use waits for its end."""
        with self.graphs.watched():
            for steps in _launches(self.steps):
                self._launch(steps)

    def finish(self) -> list[StepOutput | None]:
        """Wait for the outputs that somebody waits for; what was dropped runs on by itself."""
        if all(step.is_dropped for step in self.steps):
            self._launched = [one._replace(steps=(), packed=()) for one in self._launched]
        else:
            self.wait()
        outputs = [None if step.is_dropped else self._outputs.get(step) for step in self.steps]
        self.steps, self._outputs = (), {}  # a slot's memory is free when nobody knows the slot
        return outputs

    def wait(self) -> None:
        """Return when the device is done with all of it."""
        with self.graphs.watched():
            while self._launched:
                self._fetch(self._launched.pop(0))

    def _launch(self, steps: Sequence[StepInput]) -> None:
        launch = self.graphs.launch(_shape(steps))
        if any(_share_memory(launched.launch, launch) for launched in self._launched):
            self.wait()
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


def _share_memory(one: Launch, other: Launch) -> bool:
    """Whether the second may start only when the first's outputs were fetched."""
    both_have_logits = one.memory.logits is not None and other.memory.logits is not None
    return one is other or both_have_logits


def _launches(steps: Sequence[StepInput]) -> Iterator[Sequence[StepInput]]:
    """Which steps go together: those with a head while they fit, each of the others alone."""
    together: list[StepInput] = []
    for step in steps:
        if not step.has_head:
            continue
        rows = sum(other.tree.num_rows for other in together) + step.tree.num_rows
        if together and (rows > ROW_BUCKETS[-1] or len(together) == SEQUENCE_BUCKETS[-1]):
            yield together
            together = []
        together.append(step)
    if together:
        yield together
    yield from ([step] for step in steps if not step.has_head)


def _shape(steps: Sequence[StepInput]) -> StepShape:
    return StepShape(
        rows=bucket(ROW_BUCKETS, sum(step.tree.num_rows for step in steps)),
        sequences=bucket(SEQUENCE_BUCKETS, len(steps)),
        has_head=steps[0].has_head,
        is_sampled=any(step.has_head and step.sampling.temperature > 0 for step in steps),
        has_logits=any(len(_logits_rows(step)) for step in steps),
    )


def _logits_rows(step: StepInput) -> np.ndarray:
    """int64: rows whose choice takes more than the largest score; all where they were asked for."""
    if step.wants_logits:
        return np.arange(step.tree.num_rows)
    return _constrained_rows(step)


def _constrained_rows(step: StepInput) -> np.ndarray:
    allowed = step.allowed or ()
    return np.array([row for row, ids in enumerate(allowed) if ids is not None], np.int64)


def _output(launched: _Launched, index: int, ms: float) -> StepOutput:
    """Copy a sequence's part out of the shared memory, its rows in the order of its tree."""
    step, (first_row, order) = launched.steps[index], launched.packed[index]
    host = launched.launch.memory.outputs.host
    rows = first_row + step.slot.places
    chosen, margins = host.chosen[rows].astype(np.int64), host.margins[rows]
    top = host.top[rows].astype(np.int64)
    path = order[host.path[index, : int(host.accepted[index])]]
    logits = _logits(launched, step, rows)
    if len(constrained := _constrained_rows(step)):
        chosen, path = _chosen_on_the_host(step, constrained, chosen, logits)
    return StepOutput(
        chosen=chosen,
        path=path,
        margins_of=lambda wanted: margins[wanted],
        top_tokens=lambda: top,
        ms=ms,
        step_rows=sum(other.tree.num_rows for other in launched.steps),
        logits=logits if step.wants_logits else None,
    )


def _logits(launched: _Launched, step: StepInput, rows: np.ndarray) -> torch.Tensor:
    """float32 [len(_logits_rows), vocab], on the CPU."""
    held, wanted = launched.launch.memory.logits, _logits_rows(step)
    if held is None or not len(wanted):
        return torch.empty(0, 0)
    return held[torch.from_numpy(rows[wanted]).to(held.device)].cpu()


def _chosen_on_the_host(
    step: StepInput, constrained: np.ndarray, chosen: np.ndarray, logits: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Choose where a constraint decides, which the device does not know, and walk anew."""
    tree = step.tree
    allowed = None if step.allowed is None else [step.allowed[row] for row in constrained]
    positions = (step.slot.length + 1 + tree.depths)[constrained]
    scores = logits[torch.from_numpy(constrained)] if step.wants_logits else logits
    chosen[constrained] = choose(scores, positions, step.sampling, allowed)
    return chosen, verify(tree.token_ids, tree.parents, chosen)
