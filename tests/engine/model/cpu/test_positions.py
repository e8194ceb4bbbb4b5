"""The tables against the angles of each position alone."""

import numpy as np
import pytest

from engine.model.cpu.positions import KVSlot, Rotary
from engine.model.model_config import ModelConfig
from tests.support.tiny_models import tiny_model


@pytest.mark.parametrize("positions", [[0], [3, 1, 1023, 1024], [5000, 2]])
def test_a_position_has_its_angles_however_far_the_tables_reach(positions):
    config = ModelConfig.from_hugging_face(tiny_model("qwen2").config.to_dict())
    rotary = Rotary(config, np.dtype(np.float64))
    rotary.at(np.array([7]))
    cosines, sines = rotary.at(np.array(positions))
    steps = np.arange(0, config.head_dim, 2) / config.head_dim
    angles = np.array(positions)[:, None] * config.rope_theta**-steps
    assert np.allclose(cosines, np.cos(angles), rtol=0, atol=1e-12)
    assert np.allclose(sines, np.sin(angles), rtol=0, atol=1e-12)


def test_a_slot_takes_the_memory_of_the_most_tokens_that_it_ever_held():
    config = ModelConfig.from_hugging_face(tiny_model("qwen2").config.to_dict())
    slot = KVSlot(config, 1000, np.dtype(np.float32), 16)
    assert slot.num_bytes == 0
    slot.commit(range(10))
    slot.truncate(2)
    assert slot.num_bytes == 10 * 2 * 4 * 16 * config.num_layers * config.num_kv_heads
