"""What fits which card is what loading would say, and `auto` takes what is good to type with."""

from types import SimpleNamespace

import pytest
import torch

from engine.model.device import DeviceChoice
from engine.model.gpu import fit
from engine.model.gpu.fit import PLANNED_CARDS, Card, fits, pick, picked
from engine.model.model_config import QWEN_SHAPES
from kernels.weight import BYTES_OF_WEIGHT


def card_named(name):
    return next(card for card in PLANNED_CARDS if card.name == name)


@pytest.mark.parametrize(
    ("name", "model", "form"),
    [
        ("RTX 4060", "1.5b", "bfloat16"),
        ("RTX 4070", "7b", "fp8"),
        ("RTX 4060 Ti", "1.5b", "bfloat16"),  # 7b as fp8 fits, and takes 25 ms a step at the least
        ("RTX 4090", "14b", "fp8"),
        ("H200", "32b", "bfloat16"),
    ],
)
def test_auto_takes_the_largest_model_that_is_good_to_type_with(name, model, form):
    found = pick(card_named(name))
    assert (found.model, found.form) == (model, form)
    assert found.floor_ms <= 20
    assert found.plan.positions >= 16_384


def test_the_floor_is_reading_the_weights_and_the_context_once():
    seven = next(one for one in fits(card_named("RTX 4090")) if one.model == "7b")
    assert seven.form == "bfloat16"
    read = seven.plan.weights + 57_344 * 2048
    assert seven.floor_ms == pytest.approx(1000 * read / 1008e9)
    assert "14 ms a step at the least" in str(seven)


@pytest.mark.parametrize(("model", "gigabytes"), [("0.5b", 0.49), ("7b", 4.68), ("32b", 19.85)])
def test_a_q4_k_m_is_about_as_large_as_such_files(model, gigabytes):
    """But for an embedding beside the head, which the host keeps."""
    config = QWEN_SHAPES[model]
    card = Card("", 48, 1000.0, 48 << 30)
    found = next(one for one in fits(card) if (one.model, one.form) == (model, "Q4_K_M"))
    told = float(found.plan.weights)
    if not config.tie_word_embeddings:
        told += BYTES_OF_WEIGHT["q4_k"] * config.vocab_size * config.hidden_size
    assert told / 1e9 == pytest.approx(gigabytes, rel=0.12)


def test_a_file_of_four_bits_fits_where_eight_bits_do_not():
    held = {(one.model, one.form) for one in fits(card_named("RTX 4060"))}
    assert ("7b", "Q4_K_M") in held
    assert ("7b", "Q8_0") not in held


def test_by_pytorch_weights_stay_in_bfloat16():
    card = Card("", 24, 1000.0, 24 << 30, has_kernels=False)
    assert {one.form for one in fits(card)} == {"bfloat16"}
    assert pick(card).model == "1.5b"


def test_a_dtype_that_is_set_is_kept():
    assert pick(card_named("RTX 4090"), "int4").form == "int4"
    assert pick(card_named("RTX A6000"), "bfloat16").model == "7b"


def test_a_slow_card_gets_the_smallest_and_a_tiny_one_nothing():
    assert pick(Card("", 24, 10.0, 24 << 30)).model == "0.5b"
    assert pick(Card("", 1, 1000.0, 1 << 30)) is None


@pytest.mark.parametrize(
    ("told", "bandwidth"),
    [({"memory_clock_rate": 10_501_000, "memory_bus_width": 384}, 1.008e12), ({}, 272e9)],
)
def test_a_gpus_bandwidth_is_its_own_or_that_of_a_card_of_its_size(monkeypatch, told, bandwidth):
    gpu = SimpleNamespace(name="A GPU", total_memory=8 << 30, **told)
    monkeypatch.setattr(fit, "free_bytes", lambda device: 7_500_000_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: gpu)
    choice = DeviceChoice("cuda:0", "A GPU")
    assert Card.of(choice).memory_gb_s == pytest.approx(bandwidth / 1e9, rel=1e-3)
    assert picked(choice, None)[0] == "1.5b"
