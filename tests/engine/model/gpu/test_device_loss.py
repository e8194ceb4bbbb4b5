"""A fault of the device that nothing in this process survives is told from one that passes."""

from unittest.mock import Mock

import pytest
import torch

from engine.errors import DeviceLostError
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.launches import Launch
from engine.model.gpu.step_graphs import StepGraphs
from engine.model.token_tree import TokenTree

pytestmark = pytest.mark.usefixtures("one_thread")

FAULT = RuntimeError("CUDA error: an illegal memory access\nCompile with `TORCH_USE_CUDA_DSA`")


def step_of(slot):
    return StepInput(slot, TokenTree.chain([3]))


@pytest.fixture
def lost(monkeypatch):
    """From now on the device does not even say that it has done what it was asked."""
    monkeypatch.setattr(StepGraphs, "synchronize", Mock(side_effect=FAULT))


@pytest.mark.usefixtures("lost")
def test_all_whose_step_it_was_hear_that_the_device_is_lost(model, monkeypatch):
    slots = [model.new_slot(300), model.new_slot(300)]
    monkeypatch.setattr(Launch, "wait", Mock(side_effect=FAULT))
    flight = model.begin(list(map(step_of, slots)))
    with pytest.raises(DeviceLostError) as error:
        flight.finish()
    assert str(error.value) == "the device cpu is lost: CUDA error: an illegal memory access"
    assert error.value.__cause__ is FAULT


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("place", [(Launch, "start"), (StepGraphs, "launch")])
def test_whatever_is_asked_of_a_lost_device_is_answered_so(model, monkeypatch, place):
    slot = model.new_slot(300)
    monkeypatch.setattr(*place, Mock(side_effect=FAULT))
    for ask in (
        lambda: prefill(model, slot, [5]),
        lambda: model.begin([step_of(slot)]),
    ):
        with pytest.raises(DeviceLostError):
            ask()
    with pytest.raises(DeviceLostError), model.graphs.on_stream():
        raise FAULT


@pytest.mark.usefixtures("lost")
def test_a_device_that_is_full_is_not_lost(model):
    with pytest.raises(torch.OutOfMemoryError), model.graphs.on_stream():
        raise torch.OutOfMemoryError("2 GiB")


def test_an_error_that_the_device_survives_is_not_its_loss(model, monkeypatch):
    slot = model.new_slot(300)
    with monkeypatch.context() as patch:
        patch.setattr(Launch, "start", Mock(side_effect=RuntimeError("an odd shape")))
        with pytest.raises(RuntimeError, match="an odd shape"):
            prefill(model, slot, [5])
    assert len(run_step(model, step_of(slot)).chosen) == 1
