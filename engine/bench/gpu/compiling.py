"""Compiles what a run launches in processes beside each other, as a load does."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.shapes import Shape, random_model
from engine.model.gpu.selfcheck.compiling import compile_ahead

_POSITIONS = 1024


@dataclass(frozen=True, slots=True)
class Compiled:
    """The kernels of a shape's steps; `fatal` operations end the whole process of their compiler."""

    shape: str
    quantization: str
    seconds: float
    fatal: tuple[str, ...]


def compile_shapes(lab: Lab, shapes: Sequence[Shape]) -> Cases[Compiled]:
    """Compile one shape after the other; what fails here says where, once it is launched."""
    return Cases(tuple(_compiled(lab, shapes)), lab.notes)


def _compiled(lab: Lab, shapes: Sequence[Shape]) -> Iterator[Compiled]:
    for shape in shapes:
        began = time.monotonic()
        with lab.catching(shape.full_name):
            forward = random_model(shape.shallow, _POSITIONS, lab.machine).graphs.forward
            early = lab.machine.starts_early
            ended = compile_ahead(forward, lab.progress, with_programmatic=early)
            fatal = tuple(dict.fromkeys(task.only for task in ended))
            seconds = time.monotonic() - began
            yield Compiled(shape.name, shape.quantization_name, seconds, fatal)
