"""How long a step takes at a recipe's own rows, which are more than ours may have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from engine.bench.gpu.attention import Way, fastest_way
from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.recipe_step import RecipeStep
from engine.bench.gpu.shapes import Shape, random_weights
from engine.bench.gpu.steps import StepTime
from engine.config import Lookahead
from engine.model.gpu.weights import GpuWeights

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


def recipe_rows(recipe: str) -> int:
    """Rows of a full step, the current token included."""
    return Lookahead.parse(recipe).draft_len + 1


_ROWS = (1, *map(recipe_rows, RECIPES))


def measure_recipes(
    lab: Lab, shapes: Sequence[Shape], context: int, ours: Cases[StepTime] | None
) -> Cases[RecipeTime]:
    """Time one row and each recipe's rows on every shape; `ours` are our steps, where known."""
    lab.note(_NOTE)
    timed = ((shape.full_name, _time(lab, shape, context, ours)) for shape in shapes)
    return lab.cases("timing the recipes' steps", len(shapes) * len(_ROWS), timed)


def _time(
    lab: Lab, shape: Shape, context: int, ours: Cases[StepTime] | None
) -> Iterator[RecipeTime]:
    group = shape.config.num_heads // shape.config.num_kv_heads
    weights = random_weights(shape, lab.machine)
    wanted = {"shape": shape.name, "quantization": "bf16", "rows": 1, "context": context}
    our = ours.find(**wanted) if ours else None
    own: Way | None = None
    for rows in _ROWS:
        timed = partial(_ms, lab.machine, shape, weights, rows, context)
        way = fastest_way(lab, f"{shape.name}, {rows} rows,", group, timed)
        if way is None:
            continue
        own = way if rows == 1 else own
        yield RecipeTime(
            shape=shape.name,
            rows=rows,
            context=context,
            step_ms=way.duration,
            over_own_one_row=way.duration / own.duration if own else None,
            over_our_one_row=way.duration / our.step_ms if our else None,
            attention=way.name,
        )


def _ms(
    machine: Machine, shape: Shape, weights: GpuWeights, rows: int, context: int, repeats: int
) -> float:
    step = RecipeStep(machine, shape.config, weights, rows, context, repeats)
    if not step.logits().isfinite().all():
        raise ValueError("the outputs are not finite")
    return machine.captured_ms(step.chosen)
