"""The published recipes on the replay sets, in our replay and as an engine of their own runs them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.bench.gpu.cases import Cases, cases_of
from engine.bench.gpu.recipes import RECIPES, RecipeTime, recipe_rows
from engine.bench.gpu.replays import ForcedSet, ForcedSpeed

CUT = "cut to 127 rows on our kernels"
OWN = "at its own rows on cuBLAS and SDPA (computed)"
OWN_NOTE = (
    "a recipe at its own rows is computed from two measurements: the tokens per step of our "
    "replay, over the duration of a step of all its rows on cuBLAS and SDPA. The replay verifies "
    "the likeliest 127 drafted rows: for 15,15,15 its tokens per step are a lower bound of the "
    "recipe's while the cost is that of all 420 rows, so the recipe may be faster and auto over "
    "recipe smaller than here. 8,8,8 drafts 111 rows, none of which is cut. The windows "
    "of both refine what random weights say, which wins next to nothing; a real model's would win "
    "more. Auto pays for its drafting on the host, a recipe at its own rows does not"
)


@dataclass(frozen=True, slots=True)
class RecipeSpeed:
    """A recipe on one set, one way. In the replay `step_ms` has the host's work in it as well."""

    shape: str
    quantization: str
    kind: str
    recipe: str
    way: str
    rows: float
    tokens_per_step: float
    step_ms: float
    tokens_per_s: float
    auto_over_recipe: float | None


def forced_sets(results: Mapping[str, Any]) -> list[ForcedSet]:
    """All sets of all replays."""
    cases = (one for result in results.values() for one in cases_of(result))
    return [one for one in cases if isinstance(one, ForcedSet)]


def recipe_speeds(results: Mapping[str, Any]) -> Cases[RecipeSpeed]:
    """Compare the recipes on the sets of bf16, from what the other sections found."""
    recipes: Cases[RecipeTime] | None = results.get("recipes")
    speeds: list[RecipeSpeed] = []
    for one in forced_sets(results):
        for recipe in RECIPES if one.quantization == "bf16" else ():
            replayed, rows = one.speed(recipe), recipe_rows(recipe)
            if replayed is None or not replayed.items:
                continue
            step_ms = 1000 * replayed.tokens_per_step / replayed.tokens_per_s
            speeds.append(_speed(one, replayed, CUT, replayed.rows_per_step, step_ms))
            own = recipes.find(shape=one.shape, rows=rows) if recipes else None
            if own is not None:
                speeds.append(_speed(one, replayed, OWN, rows, own.step_ms))
    return Cases(tuple(speeds), (OWN_NOTE,))


def _speed(
    one: ForcedSet, replayed: ForcedSpeed, way: str, rows: float, step_ms: float
) -> RecipeSpeed:
    tokens_per_s = 1000 * replayed.tokens_per_step / step_ms
    auto = one.speed("auto")
    return RecipeSpeed(
        shape=one.shape,
        quantization=one.quantization,
        kind=one.kind,
        recipe=replayed.lookahead,
        way=way,
        rows=rows,
        tokens_per_step=replayed.tokens_per_step,
        step_ms=step_ms,
        tokens_per_s=tokens_per_s,
        auto_over_recipe=auto.tokens_per_s / tokens_per_s if auto and auto.items else None,
    )
