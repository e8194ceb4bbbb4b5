"""Joins the steps of several sequences into one launch, and hands the answers back."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch

from engine.model.gpu.buffers import Inputs, StepShape
from engine.model.gpu.drawing import noise_keys
from engine.model.gpu.planting import Kept, Planted, Seedling
from engine.model.gpu.step_graphs import (
    ROW_BUCKETS,
    SEQUENCE_BUCKETS,
    Launch,
    StepGraphs,
    bucket,
)
from engine.model.step_order import StepOrder


@dataclass(frozen=True, slots=True)
class GpuAnswer:
    """A `ScoredAnswer`. `margins` float32 [rows] say how far the best score led.

    `places` int64 [rows]: where each row stood, behind the first row of its sequence.
    """

    chosen: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    margins: np.ndarray
    logits: torch.Tensor
    ms: float
    step_rows: int
    _top: np.ndarray

    def margins_of(self, rows: np.ndarray) -> np.ndarray:
        """How far the best score of these rows led."""
        led: np.ndarray = self.margins[rows]
        return led

    def top_tokens(self) -> np.ndarray:
        """Best of the best blocks of each row."""
        return self._top


@dataclass(slots=True, eq=False)
class PendingStep:
    """A sequence's step, from the asking to the answer."""

    seedling: Seedling
    order: StepOrder
    answer: GpuAnswer | None = None


class _Flight(NamedTuple):
    """A launch whose answers have not been fetched."""

    launch: Launch
    steps: Sequence[PendingStep]
    planted: Sequence[Planted]
    began: float


@dataclass(slots=True)
class StepQueue:
    """Steps wait for each other until `num_running` sequences have asked, or one cannot wait.

    What asks the device raises DeviceLostError where that is lost.
    """

    graphs: StepGraphs
    num_running: int = 1
    _waiting: list[PendingStep] = field(default_factory=list)
    _flight: _Flight | None = None

    def ask(self, step: PendingStep) -> None:
        """Queue a step; launch when nobody else is expected."""
        self._waiting.append(step)
        if len(self._waiting) >= self.num_running and self._flight is None:
            with self.graphs.watched():
                self._launch()

    def forget(self, step: PendingStep) -> bool:
        """Drop a step that still waits; tell whether it did. Others run, and nobody listens."""
        is_waiting = step in self._waiting
        if is_waiting:
            self._waiting.remove(step)
        return is_waiting

    def kept(self, step: PendingStep) -> Kept | None:
        """What a step that still waits is to move; one that was launched moves it."""
        return step.seedling.kept if step in self._waiting else None

    def drop_kept(self, step: PendingStep) -> None:
        """What a step that still waits was to move is in its place already."""
        if step in self._waiting:
            step.seedling = replace(step.seedling, kept=None)

    def answer(self, step: PendingStep) -> GpuAnswer:
        """Wait for a queued step's answer. Raises RuntimeError where its launch had failed."""
        with self.graphs.watched():
            while step.answer is None:
                if self._flight is None:
                    if step not in self._waiting:
                        raise RuntimeError("the step failed, with one of another sequence")
                    self._launch()
                self._fetch()
        return step.answer

    def fill(self, seedling: Seedling) -> None:
        """Write keys and values of a chain of rows, without an answer."""
        shape = StepShape(bucket(ROW_BUCKETS, seedling.tree.num_rows), 1, has_head=False)
        with self.graphs.watched():
            launch = self.graphs.launch(shape)
            inputs = launch.memory.inputs
            inputs.plant([seedling])
            launch.start()
            launch.wait()

    def _launch(self) -> None:
        """Start as many of the waiting steps, first come first served, as fit into one.

        Where that fails they still wait, so each may be forgotten, and none takes others along.
        """
        steps = self._fitting()
        launch = self.graphs.launch(_shape(steps))
        inputs = launch.memory.inputs
        planted = inputs.plant([step.seedling for step in steps])
        for step, place in zip(steps, planted, strict=True):
            _set_noise(inputs, step, place)
        began = time.perf_counter()
        launch.start()
        self._waiting = self._waiting[len(steps) :]
        self._flight = _Flight(launch, steps, planted, began)

    def _fitting(self) -> list[PendingStep]:
        rows, steps = 0, list[PendingStep]()
        for step in self._waiting[: SEQUENCE_BUCKETS[-1]]:
            rows += step.seedling.tree.num_rows
            if rows > ROW_BUCKETS[-1]:
                break
            steps.append(step)
        return steps

    def _fetch(self) -> None:
        flight, self._flight = self._flight, None
        if flight is None:
            return
        flight.launch.wait()
        ms = 1000 * (time.perf_counter() - flight.began)
        for place, (step, planted) in enumerate(zip(flight.steps, flight.planted, strict=True)):
            step.answer = _answer(flight, step, place, planted, ms)


def _shape(steps: Sequence[PendingStep]) -> StepShape:
    rows = sum(step.seedling.tree.num_rows for step in steps)
    return StepShape(
        rows=bucket(ROW_BUCKETS, rows),
        sequences=bucket(SEQUENCE_BUCKETS, len(steps)),
        is_sampled=any(step.order.sampling.temperature > 0 for step in steps),
        has_logits=any(len(step.order.logits_rows) for step in steps),
    )


def _set_noise(inputs: Inputs, step: PendingStep, planted: Planted) -> None:
    """Write the noise of a sequence's rows. A step without noise does not look at it."""
    sampling, tree = step.order.sampling, step.order.tree
    rows = slice(planted.first_row, planted.first_row + tree.num_rows)
    is_greedy = sampling.temperature == 0.0
    inputs.logit_scales[rows] = 1.0 if is_greedy else 1.0 / sampling.temperature
    inputs.noise_scales[rows] = 0.0 if is_greedy else 1.0
    if not is_greedy:
        positions = step.seedling.length + 1 + tree.depths[planted.order]
        inputs.keys[rows] = noise_keys(sampling.seed, positions)


def _answer(
    flight: _Flight, step: PendingStep, place: int, planted: Planted, ms: float
) -> GpuAnswer:
    """Copy a sequence's part out of the shared memory, its rows in the order of its tree."""
    host, order = flight.launch.memory.outputs.host, planted.order
    rows = slice(planted.first_row, planted.first_row + len(order))
    back = np.empty_like(order)  # where each row of the tree stands
    back[order] = np.arange(len(order))
    accepted = int(host.accepted[place])
    return GpuAnswer(
        chosen=host.chosen[rows][back].astype(np.int64),
        rows=order[host.path[place, :accepted]],
        places=back,
        margins=host.margins[rows][back],
        logits=_logits(flight, step, planted.first_row + back),
        ms=ms,
        step_rows=sum(other.seedling.tree.num_rows for other in flight.steps),
        _top=host.top[rows][back].astype(np.int64),
    )


def _logits(flight: _Flight, step: PendingStep, places: np.ndarray) -> torch.Tensor:
    held, rows = flight.launch.memory.logits, step.order.logits_rows
    if held is None or not len(rows):
        return torch.empty(0, 0)
    return held[torch.from_numpy(places[rows]).to(held.device)].cpu()
