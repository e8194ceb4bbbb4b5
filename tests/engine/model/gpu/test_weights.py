"""Rows are reordered so that what belongs together stands together; fewer bits stay near."""

import pytest
import torch

from engine.model.gpu.weights import pair_gates
from engine.model.token_tree import TokenTree
from tests.bench.forms_bench import unpacked
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import logits_behind
from tests.support.tiny_models import tiny_model


@pytest.fixture(scope="module")
def reference():
    return tiny_model("qwen2", 2, hidden_size=128, intermediate_size=256)


def test_gate_and_up_stand_in_turns():
    matrix = torch.arange(8.0)[:, None]
    assert pair_gates(matrix)[:, 0].tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize("quantization", ["fp8", "int4"])
def test_fewer_bits_say_what_their_numbers_say(reference, quantization):
    """As the same model with these numbers in whole weights."""
    packed, whole = gpu_qwen2(reference, quantization=quantization), gpu_qwen2(reference)
    said, said_by_whole, expected = (
        logits_behind(model, range(30, 60), TokenTree.chain([7, 8, 9]))
        for model in (packed, whole, unpacked(packed))
    )
    assert not torch.equal(said, said_by_whole)
    torch.testing.assert_close(said, expected)


def test_a_head_keeps_eight_bits_and_the_name_of_the_dtype_is_that_of_the_layers(reference):
    model = gpu_qwen2(reference, quantization="int4")
    weights = model.graphs.forward.weights
    assert (weights.layers[0].down.quantization, weights.head.quantization) == ("int4", "fp8")
    assert model.dtype_name == "int4"
    assert gpu_qwen2(reference, dtype=torch.bfloat16).dtype_name == "bfloat16"
