"""What a step reads: the weights in their form, and the context."""

import pytest

from engine.model.gpu.cards import card_named
from engine.model.gpu.held_forms import HELD_FORMS, products_of
from engine.model.gpu.step_work import AttentionWork, Busy, ProductWork, StepWork, step_bytes
from engine.model.known_shapes import QWEN_SHAPES

ALL = Busy(1.0, 1.0, 1.0)


def test_a_model_in_eight_bits_reads_half_of_what_it_reads_in_sixteen():
    bytes_of = {
        form: step_bytes(StepWork(QWEN_SHAPES["7b"], form, context=0)) for form in HELD_FORMS
    }
    assert bytes_of["fp8"] == bytes_of["bfloat16"] / 2
    assert bytes_of["Q8_0"] == bytes_of["bfloat16"] * 8.5 / 16


def test_a_step_reads_the_keys_and_values_of_its_context_once_a_layer():
    config = QWEN_SHAPES["1.5b"]
    empty, full = (step_bytes(StepWork(config, context=context)) for context in (0, 2048))
    assert full - empty == 28_672 * 2048
    assert full - empty == config.num_layers * StepWork(config).kv_bytes


@pytest.mark.parametrize("name", ["RTX 3060", "H200"])
def test_reading_all_products_at_full_bandwidth_is_the_floor(name):
    work, card = StepWork(QWEN_SHAPES["0.5b"], context=0), card_named(name)
    took = sum(
        one.count * ProductWork.of(one, work.rows, card).memory_us(card, ALL)
        for one in products_of(work.config, work.form)
    )
    assert took == pytest.approx(1e6 * step_bytes(work) / card.bandwidth)


def test_more_rows_are_more_for_the_cache_and_the_tensor_cores_and_not_for_memory():
    card = card_named("RTX 4090")
    product = next(products_of(QWEN_SHAPES["7b"], "bfloat16"))
    one, many = (ProductWork.of(product, rows, card) for rows in (1, 128))
    assert many.weights == one.weights
    assert many.through_cache > one.through_cache
    assert many.operations == 8 * one.operations  # a tile of 16 rows is the least


def test_a_short_text_has_fewer_programs_of_attention_than_a_long_one():
    config = QWEN_SHAPES["7b"]
    short, long = (AttentionWork.of(StepWork(config, context=it)) for it in (100, 8192))
    assert (short.splits, short.blocks) == (2, 1)
    assert long.splits == 16
    assert AttentionWork.of(StepWork(config, rows=16)).blocks == 2  # seven heads a row
