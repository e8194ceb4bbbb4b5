from dataclasses import replace

import pytest

from engine.bench.gpu.shapes import SHAPES, Shape, random_model
from engine.bench.gpu.steps import (
    StepPlan,
    measure_programmatic,
    measure_steps,
    plan_steps,
    step_bytes,
)


def test_the_floor_is_each_weight_and_each_key_and_value_once(shape, machine):
    model = random_model(shape, 256, machine)
    config = shape.config
    without_norms_and_biases = config.num_parameters - config.vocab_size * config.hidden_size
    small = config.num_layers * (2 * config.hidden_size + 256) + config.hidden_size
    keys_and_values = 2 * 100 * config.num_layers * config.num_kv_heads * config.head_dim
    expected = without_norms_and_biases - small + keys_and_values
    assert step_bytes(model, 100) == 4 * expected


def test_steps_are_timed_against_the_bandwidth(shape, lab):
    plan = StepPlan(shape.held("fp8"), ((1, 64), (8, 64)))
    steps = measure_steps(lab, [plan])
    one, many = steps.cases
    assert (one.shape, one.quantization, one.rows, one.context) == ("tiny", "fp8", 1, 64)
    assert one.floor_ms == pytest.approx(one.bytes / 100e9 * 1000)
    assert one.floor_over_step == pytest.approx(one.floor_ms / one.step_ms)
    assert one.bytes == many.bytes
    assert steps.find(quantization="fp8", rows=8) is many
    assert steps.find(quantization="bf16", rows=8) is None


def test_the_full_grid_is_for_7b_alone():
    shapes = [Shape(name, SHAPES[name]) for name in ("0.5b", "7b")]
    plans = plan_steps(shapes, (512, 2048, 8192), (1, 4, 32))
    assert [(plan.shape.name, plan.shape.quantization, len(plan.cases)) for plan in plans] == [
        ("0.5b", "float", 2),
        ("0.5b", "fp8", 2),
        ("7b", "float", 9),
        ("7b", "fp8", 9),
    ]
    assert plans[0].cases == ((1, 2048), (32, 2048))
    assert plans[2].positions > 8192 + 32


def test_both_ways_to_launch_are_timed_over_the_same_weights(shape, lab):
    (found,) = measure_programmatic(lab, shape, [(8, 64)])
    assert (found.shape, found.rows, found.context) == ("tiny", 8, 64)
    assert min(found.off_ms, found.on_ms) > 0
    assert found.replays_different == 0


def test_a_model_that_cannot_run_is_a_note_and_the_others_are_timed(shape, lab):
    broken = Shape("broken", replace(shape.config, hidden_size=96), "int4")
    plans = [StepPlan(broken, ((1, 8),)), StepPlan(shape, ((1, 8),))]
    steps = measure_steps(lab, plans)
    assert [time.shape for time in steps.cases] == ["tiny"]
    assert "broken int4: ValueError: int4 wants a multiple" in steps.notes[-1]
