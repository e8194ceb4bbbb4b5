"""What fits which card is what loading would say, and `auto` takes what is good to type with."""

from itertools import pairwise

import pytest
import torch

from engine.model import device as devices
from engine.model.device import GPU_QUANTIZATIONS, DeviceChoice
from engine.model.gpu import cards
from engine.model.gpu.card_plan import file_bytes, fits, pick, picked
from engine.model.gpu.cards import PLANNED_CARDS, Card
from engine.model.gpu.memory_plan import MemoryPlan
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.loading import loaded_model
from engine.model.loading.loaded_model import load_model
from engine.progress import NoProgress
from kernels.weight import BYTES_OF_WEIGHT
from tests.support.tiny_models import save_model, tiny_model


def card_named(name):
    return next(card for card in PLANNED_CARDS if card.name == name)


def card_like(free, bandwidth, **others):
    """A card with so many bytes free and so many bytes a second."""
    return Card("", free >> 30, bandwidth / 1e9, free, **others)


@pytest.mark.parametrize(
    ("name", "model", "form"),
    [
        ("RTX 4060", "1.5b", "bfloat16"),
        ("RTX 4070", "7b", "fp8"),
        ("RTX 4060 Ti", "1.5b", "bfloat16"),  # 7b as fp8 fits, and takes 25 ms a step at the least
        ("RTX 4090", "14b", "fp8"),
        ("RTX A6000", "14b", "fp8"),
        ("A100", "32b", "fp8"),
        ("H200", "32b", "bfloat16"),
    ],
)
def test_auto_takes_the_largest_model_that_is_good_to_type_with(name, model, form):
    found = pick(card_named(name))
    assert (found.model, found.form) == (model, form)
    assert found.floor_ms <= 20
    assert found.plan.positions >= 16_384


@pytest.mark.parametrize("card", PLANNED_CARDS, ids=lambda card: card.name)
def test_what_fits_is_what_the_memory_plan_says(card):
    found = [fit for fit in fits(card) if fit.form in GPU_QUANTIZATIONS]
    for fit in found:
        config, quantization = QWEN_SHAPES[fit.model], GPU_QUANTIZATIONS[fit.form]
        assert fit.plan == MemoryPlan.make(config, quantization, card.free, None)
        assert fit.plan.total <= card.free


def test_the_floor_is_reading_the_weights_and_the_context_once():
    seven = next(fit for fit in fits(card_named("RTX 4090")) if fit.model == "7b")
    assert seven.form == "bfloat16"
    read = seven.plan.weights + 57_344 * 2048
    assert seven.floor_ms == pytest.approx(1000 * read / 1008e9)
    assert "14 ms a step at the least" in str(seven)


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


def test_a_file_of_four_bits_fits_where_eight_bits_do_not():
    held = {(fit.model, fit.form) for fit in fits(card_named("RTX 4060"))}
    assert ("7b", "Q4_K_M") in held
    assert ("7b", "Q8_0") not in held


def test_more_memory_fits_all_that_less_does():
    held = [{(fit.model, fit.form) for fit in fits(card)} for card in PLANNED_CARDS]
    assert all(less <= more for less, more in pairwise(held))


def test_by_pytorch_weights_stay_in_bfloat16():
    card = card_like(24 << 30, 1e12, has_kernels=False)
    assert {fit.form for fit in fits(card)} == {"bfloat16"}
    assert pick(card).model == "1.5b"


def test_a_dtype_that_is_set_is_kept():
    assert pick(card_named("RTX 4090"), "int4").form == "int4"
    assert pick(card_named("RTX A6000"), "bfloat16").model == "7b"


def test_a_slow_card_gets_the_smallest_and_a_tiny_one_nothing():
    assert pick(card_like(24 << 30, 10e9)).model == "0.5b"
    assert pick(card_like(1 << 30, 1e12)) is None


def test_a_machine_without_a_gpu_gets_the_offline_model():
    assert picked(DeviceChoice.cpu("there is none"), None) == ("offline", None)
    assert picked(DeviceChoice.cpu("there is none"), "float32") == ("offline", "float32")


GPU = DeviceChoice(torch.device("cuda", 0), "A GPU")


@pytest.mark.parametrize(
    ("told", "bandwidth"),
    [({"memory_clock_rate": 10_501_000, "memory_bus_width": 384}, 1.008e12), ({}, 272e9)],
)
def test_a_gpus_bandwidth_is_its_own_or_that_of_a_card_of_its_size(monkeypatch, told, bandwidth):
    from types import SimpleNamespace

    monkeypatch.setattr(cards, "free_bytes", lambda device: 7_500_000_000)
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda index: SimpleNamespace(name="A GPU", total_memory=8 << 30, **told),
    )
    card = Card.of(GPU)
    assert card.memory_gb_s == pytest.approx(bandwidth / 1e9, rel=1e-3)
    assert picked(GPU, None)[0] == "1.5b"


@pytest.mark.parametrize(("chip", "bandwidth"), [("M3", 68e9), ("M2 Max", 300e9)])
def test_a_macs_bandwidth_is_that_of_the_first_chip_of_its_kind(monkeypatch, chip, bandwidth):
    monkeypatch.setattr(torch.backends.mps, "get_name", lambda: f"Apple {chip}")
    assert devices.memory_bandwidth(torch.device("mps")) == bandwidth


def test_the_model_auto_is_the_one_that_is_picked(monkeypatch, tmp_path):
    folder = str(save_model(tiny_model("qwen2", 1), tmp_path / "model"))
    monkeypatch.setattr(loaded_model, "picked", lambda choice, dtype: (folder, "float32"))
    loaded = load_model("auto", tmp_path, NoProgress(), device_name="cpu")
    assert (loaded.name, loaded.causal_lm.dtype_name) == ("model", "float32")
