"""The computed time of a step: never below its floor, and ordered as the cards and models are."""

from itertools import pairwise

import pytest

from engine.bench.gpu.shapes import SHAPES
from engine.model.gpu.cards import GRAPHICS_CARDS, find_card
from engine.model.gpu.step_model import StepWork, expected_step
from kernels.device_limits import LIMITS
from kernels.weight import QUANTIZATIONS


def card_named(name):
    card = find_card(name)
    assert card is not None
    return card


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
@pytest.mark.parametrize("model", SHAPES)
def test_no_step_is_faster_than_its_bytes(model, quantization):
    for card in GRAPHICS_CARDS:
        for rows in (1, 32, 128):
            work = StepWork(SHAPES[model], quantization, rows, runs=-(-rows // 4))
            time = expected_step(work, card, programmatic=True)
            assert time.floor < time.least < time.most


def test_a_faster_memory_makes_a_faster_step():
    names = ("RTX 4060 Laptop", "RTX 3060", "RTX 4070", "RTX 4090", "A100", "H100", "H200")
    times = [expected_step(StepWork(SHAPES["7b"]), card_named(name)).least for name in names]
    assert all(slower > faster for slower, faster in pairwise(times))


def test_a_large_model_is_nearest_to_its_floor_where_memory_is_slow():
    def share(model, card):
        time = expected_step(StepWork(SHAPES[model]), card_named(card))
        return time.floor / time.most

    assert share("7b", "RTX 4090") > 0.85 > share("7b", "H200") > share("0.5b", "H200")


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
    assert {card.architecture for card in GRAPHICS_CARDS} <= set(LIMITS)
