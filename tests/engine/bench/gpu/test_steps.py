from dataclasses import replace
from functools import partial

import pytest

from engine.bench.gpu.plot import draw_steps
from engine.bench.gpu.prefill import measure_prefill
from engine.bench.gpu.shapes import Shape, random_model
from engine.bench.gpu.steps import StepTime, measure_programmatic, measure_steps, step_bytes
from engine.bench.plots import Picture


def test_the_floor_is_each_weight_and_each_key_and_value_once(shape, machine):
    model = random_model(shape, 256, machine)
    config = shape.config
    without_norms_and_biases = config.num_parameters - config.vocab_size * config.hidden_size
    small = config.num_layers * (2 * config.hidden_size + 256) + config.hidden_size
    keys_and_values = 2 * 100 * config.num_layers * config.num_kv_heads * config.head_dim
    expected = without_norms_and_biases - small + keys_and_values
    assert step_bytes(model, 100) == 4 * expected


def test_steps_are_timed_against_the_bandwidth(shape, lab):
    held = replace(shape, quantization="fp8")
    one, many = measure_steps(lab, [held], ((1, 64), (8, 64))).cases
    assert (one.shape, one.quantization, one.rows, one.context) == ("tiny", "fp8", 1, 64)
    assert one.floor_ms == pytest.approx(one.bytes / 100e9 * 1000)
    assert one.floor_over_step == pytest.approx(one.floor_ms / one.step_ms)
    assert (many.rows, many.bytes) == (8, one.bytes)


def test_both_ways_to_launch_are_timed_over_the_same_weights(shape, lab):
    (found,) = measure_programmatic(lab, shape, [(8, 64)])
    assert (found.shape, found.rows, found.context) == ("tiny", 8, 64)
    assert min(found.off_ms, found.on_ms) > 0


def test_a_model_that_cannot_run_is_a_note_and_the_others_are_timed(shape, lab):
    broken = Shape("broken", replace(shape.config, hidden_size=96), "int4")
    steps = measure_steps(lab, [broken, shape], ((1, 8),))
    assert [time.shape for time in steps.cases] == ["tiny"]
    assert "broken int4: ValueError: int4 wants a multiple" in steps.notes[-1]


def test_a_longer_prompt_takes_longer(shape, lab):
    short, long = measure_prefill(lab, [shape], (40, 900)).cases
    assert (short.prompt_tokens, long.prompt_tokens) == (40, 900)
    assert long.rows_of_a_piece == 256
    assert short.ms < long.ms


def test_the_plot_has_a_line_for_each_model_and_context(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    times = [
        StepTime(shape, "bf16", rows, context, 10, 1.0, 2.0, 0.5)
        for shape in ("0.5b", "7b") for context in (512, 2048) for rows in (1, 8)
    ]  # fmt: skip
    Picture(tmp_path / "gpu.png").save(partial(draw_steps, times))
    assert (tmp_path / "gpu.png").read_bytes().startswith(b"\x89PNG")
