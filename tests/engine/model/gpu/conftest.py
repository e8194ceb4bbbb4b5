"""The model that most tests of the GPU's steps run: tiny, on whatever device is here."""

import pytest

from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model


@pytest.fixture(scope="module")
def reference():
    return tiny_model("qwen2", 1, num_attention_heads=7, num_key_value_heads=1, hidden_size=56)


@pytest.fixture
def model(reference):
    return gpu_qwen2(reference)
