"""The piece of a model whose steps are timed: small here, so that the test is quick."""

from dataclasses import replace

import pytest

from engine.model.cpu import speed
from engine.progress import Progress


@pytest.mark.timeout(400)  # the first one on a machine compiles the pass
def test_a_step_of_a_model_without_meaning_is_timed(monkeypatch):
    small = replace(speed._SHAPE, hidden_size=128, head_dim=64, num_heads=2, intermediate_size=200)
    monkeypatch.setattr(speed, "_SHAPE", replace(small, num_kv_heads=1, vocab_size=500))
    assert 0 < speed.measured_ms_per_gb(1, Progress()) < 1e9
