"""What fits which card is what loading would say, and `auto` takes what is good to type with."""

from itertools import pairwise

import pytest
import torch

from engine.model import device as devices
from engine.model.device import DeviceChoice, gpu_quantization
from engine.model.gpu import card_plan
from engine.model.gpu.card_plan import CARDS, Card, fits, pick, picked
from engine.model.gpu.memory_plan import MemoryPlan
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.loading import loaded_model
from engine.model.loading.loaded_model import load_model
from engine.progress import NoProgress
from tests.support.tiny_models import save_model, tiny_model


@pytest.mark.parametrize(
    ("gigabytes", "model", "dtype"),
    [
        (8, "1.5b", "bfloat16"),
        (12, "7b", "fp8"),
        (16, "1.5b", "bfloat16"),  # 7b as fp8 fits, and takes 35 ms a step at 288 GB/s
        (24, "7b", "bfloat16"),
        (48, "14b", "fp8"),
        (80, "32b", "fp8"),
    ],
)
def test_auto_takes_the_largest_model_that_is_good_to_type_with(gigabytes, model, dtype):
    found = pick(CARDS[gigabytes])
    assert (found.model, found.dtype) == (model, dtype)
    assert found.step_s <= 0.025
    assert found.positions >= 16_384


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_what_fits_is_what_the_memory_plan_says(card):
    for fit in fits(card):
        config = QWEN_SHAPES[fit.model]
        plan = MemoryPlan.make(config, gpu_quantization(fit.dtype), card.free, None)
        assert plan.total <= card.free
        assert fit.positions == plan.positions


def test_more_memory_fits_all_that_less_does():
    held = [{(fit.model, fit.dtype) for fit in fits(card)} for card in CARDS.values()]
    assert all(less <= more for less, more in pairwise(held))


@pytest.mark.parametrize(
    ("name", "bandwidth", "least_ms", "most_ms"),
    [
        ("0.5b", 4.3e12, 0.75, 1.06),
        ("1.5b", 4.3e12, 1.37, 1.74),
        ("7b", 4.3e12, 4.15, 4.61),
        ("32b", 4.3e12, 17.4, 18.8),
        ("7b", 1.0e12, 15.9, 16.8),
    ],
)
def test_step_times_are_those_of_the_longer_computation(name, bandwidth, least_ms, most_ms):
    """Kernel by kernel, on an H200 and an RTX 4090."""
    card = Card("", 150 << 30, bandwidth)
    (fit,) = (one for one in fits(card) if (one.model, one.dtype) == (name, "bfloat16"))
    assert least_ms <= 1000 * fit.step_s <= most_ms * 1.01


def test_by_pytorch_weights_stay_in_bfloat16():
    card = Card("", 24 << 30, 1e12, has_kernels=False)
    assert {fit.dtype for fit in fits(card)} == {"bfloat16"}
    assert pick(card).model == "1.5b"


def test_a_dtype_that_is_set_is_kept():
    assert pick(CARDS[24], "int4").dtype == "int4"
    assert pick(CARDS[48], "bfloat16").model == "7b"


def test_a_slow_card_gets_the_smallest_and_a_tiny_one_nothing():
    assert pick(Card("", 24 << 30, 10e9)).model == "0.5b"
    assert pick(Card("", 1 << 30, 1e12)) is None


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

    monkeypatch.setattr(card_plan, "free_bytes", lambda device: 7_500_000_000)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda index: SimpleNamespace(name="A GPU", **told)
    )
    card = Card.of(GPU)
    assert card.bandwidth == pytest.approx(bandwidth, rel=1e-3)
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
