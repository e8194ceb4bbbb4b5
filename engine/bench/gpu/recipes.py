"""How long a step takes at a recipe's own rows, which are more than ours may have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.bench.gpu.failures import Notes
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.recipe_step import RecipeStep
from engine.bench.gpu.shapes import Shape, random_weights
from engine.bench.gpu.steps import Steps
from engine.config import Lookahead
from engine.model.gpu.weights import GpuWeights
from engine.progress import Progress

RECIPES = ("8,8,8", "15,15,15")
_NOTE = (
    "bf16, all in one graph: matrices by cuBLAS, attention by torch with a mask over rows and "
    "keys; norms, gates and rotations are torch's own kernels, not fused, and nothing is copied "
    "from or to the host"
)


@dataclass(frozen=True, slots=True)
class RecipeTime:
    """A step, its ratio to one row of its own and of ours; None where that was not timed."""

    shape: str
    rows: int
    context: int
    step_ms: float
    over_own_one_row: float | None
    over_our_one_row: float | None
    attention: str  # the faster way


@dataclass(frozen=True, slots=True)
class Recipes:
    """All steps that were timed."""

    times: tuple[RecipeTime, ...]
    notes: tuple[str, ...]

    def find(self, shape: str, rows: int) -> RecipeTime | None:
        """The time of one case, where it was taken."""
        found = (time for time in self.times if (time.shape, time.rows) == (shape, rows))
        return next(found, None)


class _Timed(NamedTuple):
    ms: float
    attention: str


def recipe_rows(recipe: str) -> int:
    """Rows of a full step, the current token included."""
    return Lookahead.parse(recipe).draft_len + 1


def measure_recipes(
    machine: Machine,
    shapes: Sequence[Shape],
    context: int,
    ours: Steps | None,
    progress: Progress,
) -> Recipes:
    """Time one row and each recipe's rows on every shape; `ours` are our steps, where known."""
    rows = (1, *map(recipe_rows, RECIPES))
    notes, times = Notes(), list[RecipeTime]()
    progress.begin("timing the recipes' steps", len(shapes) * len(rows))
    try:
        for shape in shapes:
            with notes.catching(f"{shape.name} bf16"):
                times += _time_shape(machine, shape, rows, context, ours, notes, progress)
            machine.release()
    finally:
        progress.end()
    return Recipes(tuple(times), (_NOTE, *notes))


def _time_shape(
    machine: Machine,
    shape: Shape,
    rows: Sequence[int],
    context: int,
    ours: Steps | None,
    notes: Notes,
    progress: Progress,
) -> list[RecipeTime]:
    weights = random_weights(shape.config, "float", machine)
    found: dict[int, _Timed] = {}
    for count in rows:
        ways = _time_ways(machine, shape, weights, count, context, notes)
        if ways:
            found[count] = min(ways)
        progress.advance(1)
    own, our = found.get(1), ours and ours.find(shape.name, "bf16", 1, context)
    return [
        RecipeTime(
            shape=shape.name,
            rows=count,
            context=context,
            step_ms=timed.ms,
            over_own_one_row=timed.ms / own.ms if own else None,
            over_our_one_row=timed.ms / our.step_ms if our else None,
            attention=timed.attention,
        )
        for count, timed in found.items()
    ]


def _time_ways(
    machine: Machine, shape: Shape, weights: GpuWeights, rows: int, context: int, notes: Notes
) -> list[_Timed]:
    """Time the step with each way to share keys and values among heads that torch can run."""
    group = shape.config.num_heads // shape.config.num_kv_heads
    found = []
    for name, repeats in (("shared heads", 1), ("repeated heads", group)):
        with notes.catching(f"{shape.name}, {rows} rows, {name}"):
            ms = _ms(machine, RecipeStep(machine, shape.config, weights, rows, context, repeats))
            found.append(_Timed(ms, name))
        machine.release()
    return found


def _ms(machine: Machine, step: RecipeStep) -> float:
    if not step.logits().isfinite().all():
        raise ValueError("the outputs are not finite")
    return machine.captured_ms(step.chosen)
