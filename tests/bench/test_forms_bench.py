"""Compares fewer bits with whole weights on the same text."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import ConfigurationError
from engine.model.device import DeviceChoice
from engine.progress import Progress
from tests.bench.forms_bench import measure_quantizations, quantization_json, quantization_table
from tests.support.int4_folder import quantize_folder
from tests.support.replayed import replay_item
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

WIDE: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 256}
ITEMS = [replace(replay_item("x + 1\n" * n), prefix="def f(x):\n    return ") for n in (3, 60)]


def measure(model, tmp_path, items=ITEMS):
    folder = str(save_model(model, tmp_path / "model"))
    return measure_quantizations(folder, items, DeviceChoice.of("cpu"), tmp_path, Progress())


@pytest.mark.timeout(300)  # compiles first
def test_each_form_reads_the_same_tokens_and_the_whole_one_agrees_with_itself(tmp_path):
    figures = measure(tiny_model("qwen2", 1, **WIDE), tmp_path)
    assert [one.dtype for one in figures] == ["bfloat16", "fp8", "int4", "int8"]
    assert len({one.tokens for one in figures}) == 1
    assert figures[0].agreement == 1.0
    assert 0 < figures[2].agreement < 1.0
    assert figures[3].agreement > figures[2].agreement
    assert figures[3].weights_mb < figures[0].weights_mb
    assert all(one.nats_per_token > 0 for one in figures)
    assert [row["dtype"] for row in quantization_json(figures)["forms"]] == [
        one.dtype for one in figures
    ]
    assert quantization_table(figures).row_count == 4


def test_a_file_s_own_form_costs_what_the_file_costs(tmp_path):
    """Compared with bfloat16 from the same file, which rounds."""
    quantized = save_model(tiny_model("qwen2", 1, **WIDE), tmp_path / "quantized")
    quantize_folder(quantized, "gptq")
    given = (ITEMS[:1], DeviceChoice.of("cpu"), tmp_path, Progress())
    figures = measure_quantizations(str(quantized), *given)
    assert [one.dtype for one in figures] == ["bfloat16", "int4", "fp8", "int4", "int8"]
    assert figures[1].weights_mb < figures[0].weights_mb
    assert figures[1].nats_per_token == pytest.approx(figures[0].nats_per_token, rel=1e-3)


def test_a_model_of_another_kind_has_no_such_forms(tmp_path):
    with pytest.raises(ConfigurationError, match="no Qwen2"):
        measure(tiny_model("mistral", 1), tmp_path)
