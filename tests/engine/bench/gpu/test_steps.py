from dataclasses import replace

import pytest

from engine.bench.gpu.operations import measure_operations
from engine.bench.gpu.shapes import random_model
from engine.bench.gpu.steps import measure_prefill, measure_steps, step_bytes


def test_the_floor_is_each_weight_and_each_key_and_value_once(shape, machine):
    """2 layers of 4 matrices and the head, inputs times outputs; 2 kv heads of 32 numbers."""
    model = random_model(shape, 256, machine)
    layer = 128 * 256 + 128 * 128 + 128 * 512 + 256 * 128
    assert step_bytes(model, 0) == 4 * (2 * layer + 128 * shape.config.vocab_size)
    assert step_bytes(model, 100) == step_bytes(model, 0) + 4 * 2 * 2 * 100 * 2 * 32


def test_steps_are_timed_against_the_bandwidth(shape, lab):
    held = replace(shape, quantization="fp8")
    one, many = measure_steps(lab, held, ((1, 64), (8, 64)))
    assert (one.model, one.rows, one.context) == ("tiny fp8", 1, 64)
    assert one.floor_ms == pytest.approx(one.bytes / 100e9 * 1000)
    assert one.floor_over_step == pytest.approx(one.floor_ms / one.step_ms)
    assert (many.rows, many.bytes) == (8, one.bytes)


def test_a_longer_prompt_takes_longer(shape, lab):
    short, long = measure_prefill(lab, shape, (40, 900))
    assert (short.prompt_tokens, long.prompt_tokens) == (40, 900)
    assert long.rows_of_a_piece == 256
    assert short.ms < long.ms


def test_every_operation_of_a_step_is_timed_as_often_as_it_is_launched(shape, lab):
    fp8 = replace(shape, quantization="fp8")
    found = list(measure_operations(lab, fp8, [(1, 64), (8, 64)]))
    launches = {(one.operation, one.weight): one.launches for one in found}
    vocab = shape.config.vocab_size
    assert launches == {
        ("kv_commit", ""): 1,
        ("embed_rows", ""): 1,
        ("project_qkv", "256 x 128"): 2,
        ("batch_attention", ""): 2,
        ("skinny_matmul", "128 x 128"): 2,
        ("gate_up", "512 x 128"): 2,
        ("skinny_matmul", "128 x 256"): 2,
        ("lm_head", f"{vocab} x 128"): 1,
        ("acceptance_walk", ""): 1,
    }
    assert len(found) == 2 * len(launches)
    bytes_of = {(one.operation, one.weight): one.bytes for one in found}
    assert bytes_of["gate_up", "512 x 128"] == 512 * 128 + 4 * 512
    assert bytes_of["batch_attention", ""] == 2 * 64 * 64 * 4
    assert min(one.us for one in found) > 0
