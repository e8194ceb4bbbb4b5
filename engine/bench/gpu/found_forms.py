"""Models of a benchmark in the forms of steps that a load would find on this machine."""

import tempfile
from dataclasses import replace
from pathlib import Path

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.check import Extent
from engine.model.gpu.selfcheck.first_load import apply, settle
from engine.model.gpu.selfcheck.reads_check import read_finding
from engine.model.gpu.selfcheck.verdict import Verdict
from engine.progress import Progress

CHECKED_LAYERS = 2  # all are alike
_POSITIONS = 1024


class FoundForms:
    """What a load finds of each shape, looked for once a run."""

    def __init__(self, machine: Machine, progress: Progress) -> None:
        self._machine, self._progress = machine, progress
        self._verdicts: dict[Shape, Verdict] = {}

    def of(self, shape: Shape) -> Verdict:
        """The verdict on a model of this shape, found on two layers of it."""
        if shape not in self._verdicts:
            extent = Extent.of(self._machine.device)
            self._verdicts[shape] = found(shape, self._machine, self._progress, extent)
        return self._verdicts[shape]

    def model(self, shape: Shape, positions: int) -> GpuQwen2:
        """A random model that runs as a loaded one would. A CPU only stands for a GPU: there as it is."""
        verdict = self.of(shape) if self._machine.is_gpu else None
        model = random_model(shape, positions, self._machine)
        if verdict is not None:
            apply(model.graphs, verdict)
            if verdict.is_capturable:  # how long a piece takes is a matter of all layers
                model.graphs.most_read_rows = read_finding(model.graphs).rows
        return model


def found(shape: Shape, machine: Machine, progress: Progress, extent: Extent) -> Verdict:
    """Check a model of two layers of a shape, and keep nothing of it for loads."""
    small = replace(shape, config=replace(shape.config, num_layers=CHECKED_LAYERS))
    model = random_model(small, _POSITIONS, machine)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        return settle(model, Path(folder), progress, extent)
