"""Steps whose layers are one launch beside steps of six launches a layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.bench.gpu.cases import Lab
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.bench.gpu.steps import SPARE, replays_different, step_ms
from engine.model.gpu.loading import assemble
from engine.model.gpu.persistent import is_small, persistent_for


@dataclass(frozen=True, slots=True)
class LaunchForms:
    """A step in both forms.

    `replays_different` of one launch said other tokens or margins than six a layer: a race.
    """

    shape: str
    rows: int
    context: int
    six_a_layer_ms: float
    one_launch_ms: float
    replays_different: int


def measure_launch_forms(
    lab: Lab, shapes: Sequence[Shape], cases: Sequence[tuple[int, int]]
) -> tuple[LaunchForms, ...]:
    """Time both forms over the same weights, of the models and rows that there is one launch for."""
    return tuple(one for shape in shapes for one in _forms(lab.machine, shape, cases))


def _forms(
    machine: Machine, shape: Shape, cases: Sequence[tuple[int, int]]
) -> Iterator[LaunchForms]:
    if not machine.is_gpu or not is_small(shape.config):
        return
    longest = max(context for _, context in cases)
    six = random_model(shape, longest + SPARE, machine)
    forward = six.graphs.forward
    persistent = persistent_for(forward)
    if persistent is None:
        return
    one = assemble(shape.config, forward.weights, forward.arena, machine.dtype, forward.operations)
    one.graphs.forward = replace(forward, persistent=persistent)
    for rows, context in cases:
        if persistent.takes(rows):
            yield LaunchForms(
                shape=shape.name,
                rows=rows,
                context=context,
                six_a_layer_ms=step_ms(machine, six, rows, context),
                one_launch_ms=step_ms(machine, one, rows, context),
                replays_different=replays_different(six, one, rows, context),
            )
