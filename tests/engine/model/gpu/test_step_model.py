"""The computed time of a step: never below its floor, and ordered as the cards and models are."""

from dataclasses import replace
from itertools import pairwise

import pytest

from engine.model.gpu.cards import CARDS, card_named, find_card
from engine.model.gpu.held_forms import HELD_FORMS, file_bytes
from engine.model.gpu.step_model import (
    expected_prompt,
    expected_step,
    reading_step,
)
from engine.model.gpu.step_work import StepWork
from engine.model.known_shapes import QWEN_SHAPES
from kernels.device_limits import LIMITS
from kernels.weight import BYTES_OF_WEIGHT

H200 = card_named("H200")


def share(model, card, form="bfloat16"):
    """What of a step reading its bytes takes: at worst, and at best."""
    step = expected_step(StepWork(QWEN_SHAPES[model], form), card_named(card))
    return step.floor / step.most, step.floor / step.least


@pytest.mark.parametrize("form", HELD_FORMS)
@pytest.mark.parametrize("model", QWEN_SHAPES)
def test_no_step_is_faster_than_its_bytes(model, form):
    for card in CARDS:
        for one in (card, replace(card, has_kernels=False)):
            for rows in (1, 32, 128):
                work = StepWork(QWEN_SHAPES[model], form, rows, runs=-(-rows // 4))
                step = expected_step(work, one)
                assert step.floor < step.least < step.middle < step.most


def test_a_faster_memory_makes_a_faster_step():
    names = ("RTX 4060 Laptop", "RTX 3060", "RTX 4070", "RTX 4090", "A100", "H100", "H200")
    work = StepWork(QWEN_SHAPES["7b"])
    times = [expected_step(work, card_named(name)).least for name in names]
    assert all(slower > faster for slower, faster in pairwise(times))


def test_a_large_model_is_nearest_to_its_floor_where_memory_is_slow():
    assert share("7b", "RTX 4090")[0] > 0.85 > share("7b", "H200")[1] > share("0.5b", "H200")[1]


def test_few_bits_pay_where_memory_is_slow_and_not_where_decoding_them_takes_longer():
    assert share("7b", "RTX 4060", "Q4_K_M")[1] > 0.85
    assert share("7b", "H200", "Q4_K_M")[1] < 0.3


def test_drafts_on_their_way_through_the_cache_cost_more_than_one_row_but_less_than_more_steps():
    def ms(rows, runs):
        work = StepWork(QWEN_SHAPES["7b"], rows=rows, runs=runs)
        return expected_step(work, card_named("RTX 4090")).least

    assert ms(1, 1) < ms(32, 8) < 1.2 * ms(1, 1)
    assert ms(32, 8) < ms(32, 32), "more branches than programs that share them"


def test_a_piece_of_a_prompt_takes_tensor_cores_or_the_cache_longer_than_reading_the_weights():
    """So a piece of more than 128 rows, by the same kernels, would save launches alone."""
    for name in ("RTX 3090", "RTX 4060", "H200"):
        card, config = card_named(name), QWEN_SHAPES["7b"]
        assert expected_step(StepWork(config, rows=128), card).least > 1.3 * (
            expected_step(StepWork(config), card).least
        )


@pytest.mark.parametrize("card", ["RTX 4090", "H200"])
@pytest.mark.parametrize("model", ["0.5b", "1.5b", "7b"])
def test_long_pieces_of_a_prompt_take_less_than_as_many_short_ones(model, card):
    """As weights and launches are paid once; the head is read in neither."""
    config = QWEN_SHAPES[model]
    short, long = (
        reading_step(StepWork(config, rows=rows), card_named(card)) for rows in (128, 512)
    )
    assert long.floor == short.floor < expected_step(StepWork(config), card_named(card)).floor
    assert long.least < 4 * short.least
    assert short.most < long.most < 4 * short.most


def test_a_longer_prompt_takes_longer():
    work = StepWork(QWEN_SHAPES["1.5b"])
    prompts = [expected_prompt(replace(work, context=end), H200) for end in (1, 200, 2048, 2100)]
    for shorter, longer in pairwise(prompts):
        assert shorter.floor < longer.floor < longer.least < longer.most
        assert shorter.middle < longer.middle


@pytest.mark.parametrize(("model", "gigabytes"), [("0.5b", 0.49), ("7b", 4.68), ("32b", 19.85)])
def test_the_mix_of_a_q4_k_m_is_as_large_as_such_files(model, gigabytes):
    """Within 12 %: queries and keys are held in six bits where the values of a file are.

    A file has an embedding beside the head, too, which the host keeps.
    """
    config = QWEN_SHAPES[model]
    told = file_bytes(config, "Q4_K_M") / 1e9
    if not config.tie_word_embeddings:
        told += BYTES_OF_WEIGHT["q4_k"] * config.vocab_size * config.hidden_size / 1e9
    assert gigabytes * 0.88 < told < gigabytes * 1.12


@pytest.mark.parametrize(
    ("device_name", "card"),
    [
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 4090 Laptop"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "RTX 3080 Ti Laptop"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA A10G", None),
        ("Quadro RTX 3000", None),
    ],
)
def test_a_drivers_name_finds_its_card(device_name, card):
    found = find_card(device_name)
    assert (found.name if found else None) == card


def test_every_card_has_limits_of_its_own():
    assert {card.architecture for card in CARDS} <= set(LIMITS)
