from dataclasses import replace

import pytest

from engine.bench.gpu.shapes import random_model
from engine.bench.gpu.steps import measure_prefill, measure_steps, step_bytes
from engine.progress import Progress
from tests.support.tiny_shape import TINY, cpu_machine

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_floor_is_each_weight_and_each_key_and_value_once():
    """2 layers of 4 matrices and the head, inputs times outputs; 2 kv heads of 32 numbers."""
    model = random_model(TINY, 256, cpu_machine())
    layer = 128 * 256 + 128 * 128 + 128 * 512 + 256 * 128
    assert step_bytes(model, 0) == 4 * (2 * layer + 128 * TINY.config.vocab_size)
    assert step_bytes(model, 100) == step_bytes(model, 0) + 4 * 2 * 2 * 100 * 2 * 32


def test_steps_are_timed_against_the_bandwidth():
    held = replace(TINY, quantization="fp8")
    one, many = measure_steps(cpu_machine(), Progress(), held, ((1, 64), (8, 64)))
    assert (one.model, one.rows, one.context) == ("tiny fp8", 1, 64)
    assert one.floor_ms == pytest.approx(one.bytes / 100e9 * 1000)
    assert one.floor_over_step == pytest.approx(one.floor_ms / one.step_ms)
    assert (many.rows, many.bytes) == (8, one.bytes)


def test_a_longer_prompt_takes_longer():
    short, long = measure_prefill(cpu_machine(), Progress(), TINY, (40, 900))
    assert (short.prompt_tokens, long.prompt_tokens) == (40, 900)
    assert long.rows_of_a_piece == 256
    assert short.ms < long.ms
