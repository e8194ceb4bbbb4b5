"""Steps at the recipes' own rows, and what they make of the recipes' speeds."""

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.bench.gpu.cases import Cases
from engine.bench.gpu.findings import thresholds_of
from engine.bench.gpu.recipe_speeds import CUT, OWN, OWN_NOTE, recipe_speeds
from engine.bench.gpu.recipe_step import RecipeStep
from engine.bench.gpu.recipes import RecipeTime, measure_recipes, recipe_rows
from engine.bench.gpu.replays import ForcedSet, ForcedSpeed
from engine.bench.gpu.shapes import Shape, random_weights
from engine.bench.gpu.steps import StepTime


@pytest.fixture(scope="module")
def weights(shape, machine):
    return random_weights(shape, machine)


def forced_set(quantization="bf16"):
    speeds = (
        ForcedSpeed("auto", 9, 9, 300.0, 3.0, 3.0, 4.0, 30.0),
        ForcedSpeed("8,8,8", 9, 9, 200.0, 2.0, 2.0, 3.0, 100.0),
        ForcedSpeed("15,15,15", 9, 9, 250.0, 2.5, 2.5, 4.0, 120.0),
    )
    return ForcedSet("32b", quantization, "completion", 9, 90, 9, 100.0, speeds)


def recipe_time(rows, ms):
    return RecipeTime("32b", rows, 2048, ms, ms / 10, None, "shared heads")


def test_the_rows_are_those_of_the_published_recipes():
    assert [recipe_rows(recipe) for recipe in ("8,8,8", "15,15,15")] == [112, 420]


def test_steps_are_timed_beside_one_row_of_theirs_and_of_ours(shape, lab):
    ours = Cases((StepTime("tiny", "bf16", 1, 64, 10, 1.0, 2.0, 0.5),), ())
    found = measure_recipes(lab, [shape], 64, ours)
    assert [(time.shape, time.rows, time.context) for time in found.cases] == [
        ("tiny", rows, 64) for rows in (1, 112, 420)
    ]
    one, _, many = found.cases
    assert one.over_own_one_row == 1.0
    assert many.over_own_one_row == many.step_ms / one.step_ms
    assert many.over_our_one_row == many.step_ms / 2.0
    assert found.find(shape="tiny", rows=420) is many
    assert len(found.notes) == 1


def test_without_our_steps_there_is_no_ratio_to_them(shape, lab):
    found = measure_recipes(lab, [shape], 64, None)
    assert [time.over_our_one_row for time in found.cases] == [None] * 3


def test_a_shape_that_cannot_run_is_a_note_and_the_others_are_timed(shape, lab):
    config = replace(shape.config)
    object.__setattr__(config, "max_position", 16)  # no configuration may say so
    broken = Shape("broken", config)
    found = measure_recipes(lab, [broken, shape], 16, None)
    assert {time.shape for time in found.cases} == {"tiny"}
    assert all(note.startswith("broken") for note in found.notes[1:])
    assert len(found.notes) > 1


def test_outputs_that_are_not_finite_are_not_timed(shape, lab, monkeypatch):
    monkeypatch.setattr(RecipeStep, "logits", lambda self: torch.tensor([torch.nan]))
    found = measure_recipes(lab, [shape], 16, None)
    assert found.cases == ()
    assert "the outputs are not finite" in found.notes[1]


def added_flops(_, inputs, matrix, **_others):
    """The counter knows no products that are added in place."""
    return 2 * inputs[0] * inputs[1] * matrix[1]


def test_a_step_multiplies_each_row_with_all_weights(shape, machine, weights):
    step = RecipeStep(machine, shape.config, weights, rows=12, context=32, repeats=1)
    aten = torch.ops.aten
    with FlopCounterMode(display=False, custom_mapping={aten.addmm_: added_flops}) as counter:
        chosen = step.chosen()
    flops = counter.get_flop_counts()["Global"]
    products = sum(flops[kind] for kind in (aten.mm, aten.addmm, aten.addmm_))
    assert products == 2 * 12 * weights.read_bytes / 4
    assert chosen.shape == (12,)


def test_heads_say_the_same_shared_and_repeated(shape, machine, weights):
    shared, repeated = (
        RecipeStep(machine, shape.config, weights, rows=6, context=32, repeats=repeats)
        for repeats in (1, 2)
    )
    repeated._cache.copy_(shared._cache)
    logits = shared.logits()
    assert logits.isfinite().all()
    assert torch.allclose(logits, repeated.logits(), atol=1e-4)


def test_a_row_sees_its_own_branch_alone(shape, machine, weights):
    """The seventh row is the third of the second branch: only its own branch changes with it."""
    step = RecipeStep(machine, shape.config, weights, rows=12, context=32, repeats=1)
    before = step.logits()
    step._ids[6] += 1
    changed = (step.logits() - before).abs().amax(dim=1) > 1e-6
    assert changed.nonzero().flatten().tolist() == [6, 7]


def test_a_recipe_at_its_own_rows_is_tokens_per_step_over_its_step():
    recipes = Cases((recipe_time(1, 10.0), recipe_time(112, 12.0), recipe_time(420, 40.0)), ())
    found = recipe_speeds({"recipes": recipes, "replay_32b_bf16": (forced_set(),)})
    assert [(one.recipe, one.way) for one in found.cases] == [
        (recipe, way) for recipe in ("8,8,8", "15,15,15") for way in (CUT, OWN)
    ]
    cut, own = (found.find(recipe="15,15,15", way=way) for way in (CUT, OWN))
    assert (cut.rows, cut.tokens_per_s, cut.step_ms, cut.auto_over_recipe) == (120, 250, 16, 1.2)
    assert (own.rows, own.tokens_per_s, own.step_ms, own.auto_over_recipe) == (420, 100, 40, 3.0)
    assert own.tokens_per_step == cut.tokens_per_step == 4.0
    other = found.find(recipe="8,8,8", way=OWN)
    assert (other.rows, other.tokens_per_s, other.auto_over_recipe) == (112, 250.0, 1.2)
    assert "lower bound" in found.notes[0]


def test_only_what_was_measured_is_compared():
    timed = Cases((recipe_time(112, 12.0),), ())
    ways = {
        (one.recipe, one.way)
        for one in recipe_speeds({"recipes": timed, "replay": (forced_set(),)}).cases
    }
    assert ways == {("8,8,8", CUT), ("8,8,8", OWN), ("15,15,15", CUT)}
    assert {one.way for one in recipe_speeds({"replay": (forced_set(),)}).cases} == {CUT}
    assert recipe_speeds({"recipes": timed, "replay": (forced_set("fp8"),)}) == Cases(
        (), (OWN_NOTE,)
    )


def test_the_bar_judges_the_recipe_at_its_own_rows():
    recipes = Cases((recipe_time(420, 20.0),), ())
    results = {"recipes": recipes, "replay_32b_bf16": (forced_set(),)}
    name = "auto over 15,15,15 at its own rows, 32b bf16, completions"
    (threshold,) = (threshold for threshold in thresholds_of(results) if threshold.name == name)
    assert (threshold.value, threshold.bound, threshold.is_met) == (1.5, 1.5, True)
    (threshold,) = (
        threshold
        for threshold in thresholds_of({"replay_32b_bf16": (forced_set(),)})
        if threshold.name == name
    )
    assert threshold.value is None
