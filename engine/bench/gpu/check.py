"""Run only the check of a load, on models of real shapes, for a report to send us."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.bench.gpu.lab import Lab
from engine.bench.gpu.shapes import Shape, random_model
from engine.bench.gpu.steps import step_ms
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.verdict import Verdict
from kernels.operations import PORTABLE

_LAYERS = 2  # a model's layers are alike, so two stand for all
_POSITIONS = 20_480  # room for four texts of 4,200 tokens
_CONTEXT = 512


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model of two layers: the time of a step, and the result of its check."""

    model: str
    ms_of_least_rows: float
    ms_of_most_rows: float
    found: str
    verdict: Verdict


def check_shape(lab: Lab, shape: Shape) -> Iterator[CheckedModel]:
    """Check and time a model of this shape here, without keeping the verdict for loads."""
    machine = lab.machine
    operations = None if machine.has_kernels else PORTABLE
    shallow = replace(shape, config=replace(shape.config, num_layers=_LAYERS))
    model = random_model(shallow, _POSITIONS, machine, operations)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        model, verdict = settle(model, Path(folder), lab.progress)
    least, most = (step_ms(machine, model, model.row_buckets[at], _CONTEXT) for at in (0, -1))
    yield CheckedModel(shape.full_name, least, most, verdict.sentence, verdict)
