"""What steps take, for the model that has such steps."""

import pytest

from engine.errors import ConfigurationError
from tests.bench.step_bench import int8_model, measure_steps, steps_json, steps_table
from tests.support.own_qwen2 import own_qwen2
from tests.support.tiny_models import tiny_model


@pytest.mark.timeout(300)  # compiles first
def test_steps_are_timed_by_rows_and_context():
    model = own_qwen2(tiny_model("qwen2", max_position_embeddings=8192), "int8")
    first, second = measure_steps(int8_model(model), [(64, 1), (128, 5)])
    assert min(first.ms, second.ms) > 0
    assert (second.context, second.rows) == (128, 5)
    assert steps_json([first])["steps"][0]["rows"] == 1
    assert steps_table([first]).row_count == 1


def test_a_model_in_floats_has_no_such_steps():
    floats = own_qwen2(tiny_model("qwen2"), "float32")
    with pytest.raises(ConfigurationError, match="8-bit weights on a CPU, not float32 on cpu"):
        int8_model(floats)
