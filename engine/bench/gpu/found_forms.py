"""Models of a benchmark as a load would leave them on this machine."""

import tempfile
from dataclasses import replace
from pathlib import Path

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.check import Extent
from engine.model.gpu.selfcheck.first_load import apply, settle
from engine.model.gpu.selfcheck.verdict import Verdict
from engine.progress import Progress

CHECKED_LAYERS = 2  # all are alike
_POSITIONS = 1024


class FoundForms:
    """What a load finds of each shape, once a run."""

    def __init__(self, machine: Machine, progress: Progress) -> None:
        self._machine, self._progress = machine, progress
        self._verdicts: dict[Shape, Verdict] = {}

    def model(self, shape: Shape, positions: int) -> tuple[GpuQwen2, str]:
        """A random model that runs as a loaded one would, and what was found, in a sentence.

        A CPU only stands for a GPU: there it runs as it is.
        """
        if not self._machine.is_gpu:
            return random_model(shape, positions, self._machine), ""
        extent = Extent.of(self._machine.device)
        if shape not in self._verdicts:
            self._verdicts[shape] = found(shape, self._machine, self._progress, extent)
        model, verdict = random_model(shape, positions, self._machine), self._verdicts[shape]
        apply(model.graphs, verdict)
        return model, verdict.sentence


def found(shape: Shape, machine: Machine, progress: Progress, extent: Extent) -> Verdict:
    """Check a model of two layers of a shape, and keep nothing of it for loads."""
    small = replace(shape, config=replace(shape.config, num_layers=CHECKED_LAYERS))
    model = random_model(small, _POSITIONS, machine)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        return settle(model, Path(folder), progress, extent)
