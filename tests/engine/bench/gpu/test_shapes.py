from dataclasses import replace

import pytest
import torch

from engine.bench.gpu.shapes import (
    SHAPES,
    RandomTensors,
    parse_shapes,
    random_model,
)
from engine.errors import ConfigurationError
from tests.support.products import QUANTIZATIONS
from tests.support.tiny_shape import TINY, cpu_machine

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("name", "billions"), [("0.5b", 0.494), ("1.5b", 1.54), ("7b", 7.62), ("32b", 32.8)]
)
def test_the_shapes_have_the_published_sizes(name, billions):
    assert SHAPES[name].num_parameters / 1e9 == pytest.approx(billions, rel=0.01)


def test_shapes_are_named_with_commas_between():
    found = parse_shapes("7B, 0.5b,7b", "fp8")
    assert [(shape.name, shape.quantization) for shape in found] == [("7b", "fp8"), ("0.5b", "fp8")]
    with pytest.raises(ConfigurationError, match=r"'9b' is none of 0\.5b, 1\.5b, 7b, 32b"):
        parse_shapes("9b", "float")


def test_layers_have_numbers_of_their_own():
    tensors = RandomTensors(TINY.config, cpu_machine())
    assert not torch.equal(tensors["layers.0.o.weight"], tensors["layers.1.o.weight"])


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_weights_of_every_form_have_their_real_size(quantization):
    model = random_model(replace(TINY, quantization=quantization), 64, cpu_machine())
    count = TINY.config.num_parameters - TINY.config.vocab_size * TINY.config.hidden_size
    expected = count * {"float": 4, "fp8": 1, "int4": 0.5}[quantization]
    assert model.graphs.forward.weights.read_bytes == pytest.approx(
        expected, rel=0.2
    )  # scales and all


def test_a_model_has_a_cache_of_finite_numbers():
    model = random_model(TINY, 256, cpu_machine())
    assert model.arena.keys.isfinite().all()
    assert model.arena.values.std() > 0.5
