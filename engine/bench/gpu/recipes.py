"""How long a step takes at a recipe's own rows, which are more than ours may have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.bench.gpu.cases import Cases, Notes, measure_cases
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.recipe_step import RecipeStep
from engine.bench.gpu.shapes import Shape, random_weights
from engine.bench.gpu.steps import StepTime
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


class _Timed(NamedTuple):
    ms: float
    attention: str


def recipe_rows(recipe: str) -> int:
    """Rows of a full step, the current token included."""
    return Lookahead.parse(recipe).draft_len + 1


_ROWS = (1, *map(recipe_rows, RECIPES))


def measure_recipes(
    machine: Machine,
    shapes: Sequence[Shape],
    context: int,
    ours: Cases[StepTime] | None,
    progress: Progress,
) -> Cases[RecipeTime]:
    """Time one row and each recipe's rows on every shape; `ours` are our steps, where known."""
    notes = Notes({_NOTE: None})
    timed = (
        (f"{shape.name} bf16", _time(machine, shape, context, ours, notes)) for shape in shapes
    )
    total = len(shapes) * len(_ROWS)
    return measure_cases(machine, "timing the recipes' steps", total, timed, progress, notes)


def _time(
    machine: Machine, shape: Shape, context: int, ours: Cases[StepTime] | None, notes: Notes
) -> Iterator[RecipeTime]:
    weights = random_weights(shape.config, "float", machine)
    our = ours and ours.find(shape=shape.name, quantization="bf16", rows=1, context=context)
    own: _Timed | None = None
    for rows in _ROWS:
        ways = _time_ways(machine, shape, weights, rows, context, notes)
        if not ways:
            continue
        timed = min(ways)
        own = timed if rows == 1 else own
        yield RecipeTime(
            shape=shape.name,
            rows=rows,
            context=context,
            step_ms=timed.ms,
            over_own_one_row=timed.ms / own.ms if own else None,
            over_our_one_row=timed.ms / our.step_ms if our else None,
            attention=timed.attention,
        )


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
