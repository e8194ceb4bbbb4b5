"""Models of a benchmark in the forms of steps that a load would find on this machine."""

import tempfile
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.check import Extent
from engine.model.gpu.selfcheck.first_load import apply, settle
from engine.model.gpu.selfcheck.layers_check import PERSISTENT_OPERATIONS, launch_finding
from engine.model.gpu.selfcheck.reads_check import read_finding
from engine.model.gpu.selfcheck.verdict import LaunchFinding, ReadFinding, Verdict
from engine.progress import Progress

CHECKED_LAYERS = 2  # all are alike
_POSITIONS = 1024


class FoundForms:
    """What a load finds of each shape: of the operations once a run, of the forms of each model."""

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
        model = random_model(shape, positions, self._machine)
        verdict = _of_all_layers(model, self._verdicts[shape], extent)
        for held in (model.arena.keys, model.arena.values):
            held.normal_()  # which the look for forms has cleared
        return model, verdict.sentence


def _of_all_layers(model: GpuQwen2, of_two: Verdict, extent: Extent) -> Verdict:
    """Let a model run as a verdict on two of its layers says, with the forms that suit all of them."""
    verdict = without_forms(of_two)
    apply(model.graphs, verdict)
    if verdict.is_capturable and PERSISTENT_OPERATIONS.isdisjoint(verdict.replaced):
        verdict = structs.replace(verdict, launch=launch_finding(model.graphs, extent))
        apply(model.graphs, verdict)
    if verdict.is_capturable:
        verdict = structs.replace(verdict, reads=read_finding(model.graphs))
        apply(model.graphs, verdict)
    return verdict


def without_forms(of_two: Verdict) -> Verdict:
    """Without what two layers tell of one launch and of long pieces: these are matters of all layers."""
    return structs.replace(of_two, launch=LaunchFinding(), reads=ReadFinding())


def found(shape: Shape, machine: Machine, progress: Progress, extent: Extent) -> Verdict:
    """Check a model of two layers of a shape, and keep nothing of it for loads."""
    small = replace(shape, config=replace(shape.config, num_layers=CHECKED_LAYERS))
    model = random_model(small, _POSITIONS, machine)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        return settle(model, Path(folder), progress, extent)
