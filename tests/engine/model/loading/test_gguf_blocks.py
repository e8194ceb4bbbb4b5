"""A file's blocks are held as they are: to the last bit what the gguf package makes of them."""

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize

from engine.model.loading.gguf_blocks import has_own_form, own_form
from kernels.weight import stacked
from tests.support.tiny_gguf import RANDOM_BLOCKS, random_blocks

FORMS = {
    Kind.Q8_0: "q8_0",
    Kind.Q4_0: "q8_0",
    Kind.Q5_0: "q8_0",
    Kind.Q4_K: "q4_k",
    Kind.Q5_K: "q6_k_min",
    Kind.Q6_K: "q6_k",
}
FILE_BYTES = {Kind.Q8_0: 34 / 32, Kind.Q4_K: 144 / 256}  # where ours are not more


def blocks_of(kind, rows=5, width=512):
    if kind in RANDOM_BLOCKS:
        return random_blocks(kind, rows, width)
    return quantize(np.random.default_rng(1).standard_normal((rows, width), np.float32), kind)


def held(kind, **shape):
    return own_form(kind, torch.from_numpy(blocks_of(kind, **shape)))


@pytest.mark.parametrize("kind", FORMS)
def test_the_weights_are_those_of_the_file(kind):
    weight = held(kind)
    assert weight.quantization == FORMS[kind]
    assert (weight.num_outputs, weight.num_inputs) == (5, 512)
    assert torch.equal(weight.dense(), torch.from_numpy(dequantize(blocks_of(kind), kind)))


@pytest.mark.parametrize("kind", FILE_BYTES)
def test_the_blocks_take_no_more_than_in_the_file(kind):
    assert held(kind).num_bytes == 5 * 512 * FILE_BYTES[kind]


def test_some_rows_are_those_of_the_whole():
    weight = held(Kind.Q4_K)
    assert torch.equal(weight.rows(torch.tensor([4, 0, 4])), weight.dense()[[4, 0, 4]])


def test_rows_may_be_put_in_another_order():
    for kind in FORMS:
        flipped = held(kind).reordered(lambda rows: rows.flip(0))
        assert torch.equal(flipped.dense(), held(kind).dense().flip(0))


@pytest.mark.parametrize(
    "kinds", [(Kind.Q4_K, Kind.Q4_K, Kind.Q6_K), (Kind.Q5_K, Kind.Q6_K), (Kind.Q8_0, Kind.Q5_0)]
)
def test_parts_of_several_forms_become_one_matrix_without_loss(kinds):
    parts = [held(kind, rows=3 + place) for place, kind in enumerate(kinds)]
    whole = stacked(parts)
    assert torch.equal(whole.dense(), torch.cat([part.dense() for part in parts]))


def test_parts_that_no_form_holds_together_stay_apart():
    assert stacked([held(Kind.Q4_K), held(Kind.Q8_0)]) is None


def test_other_types_and_widths_have_no_form_of_their_own():
    assert own_form(Kind.F16, torch.zeros(2, 128, dtype=torch.uint8)) is None
    assert own_form(Kind.Q8_0, torch.zeros(2, 34, dtype=torch.uint8)) is None
    assert has_own_form(Kind.Q8_0, 896)
    assert not has_own_form(Kind.Q8_0, 96)
    assert not has_own_form(Kind.Q4_1, 128)
