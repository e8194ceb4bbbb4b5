"""A fault of the device that nothing in this process survives is told from one that passes."""

import pytest
import torch

from engine.config import Sampling
from engine.errors import DeviceLostError
from engine.model.gpu.step_graphs import EagerLaunch, StepGraphs
from engine.model.step_order import StepOrder
from engine.model.token_tree import TokenTree

pytestmark = pytest.mark.usefixtures("one_thread")

FAULT = RuntimeError("CUDA error: an illegal memory access\nCompile with `TORCH_USE_CUDA_DSA`")
ORDER = StepOrder(TokenTree.chain([3]), Sampling())


@pytest.fixture
def lost(monkeypatch):
    """From now on the device does not even say that it has done what it was asked."""
    monkeypatch.setattr(StepGraphs, "synchronize", raising(FAULT))


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.usefixtures("lost")
def test_all_whose_step_it_was_hear_that_the_device_is_lost(model, monkeypatch):
    slots = [model.new_slot(300), model.new_slot(300)]
    model.expect(2)
    monkeypatch.setattr(EagerLaunch, "wait", raising(FAULT))
    for slot in slots:
        slot.begin(ORDER)
    with pytest.raises(DeviceLostError) as error:
        slots[0].finish()
    assert str(error.value) == "the device cpu is lost: CUDA error: an illegal memory access"
    assert error.value.__cause__ is FAULT
    with pytest.raises(DeviceLostError):
        slots[1].finish()


@pytest.mark.usefixtures("lost")
def test_whatever_is_asked_of_a_lost_device_is_answered_so(model, monkeypatch):
    slot = model.new_slot(300)
    monkeypatch.setattr(EagerLaunch, "start", raising(FAULT))
    for ask in (
        lambda: slot.prefill([5]),
        lambda: slot.begin(ORDER),
        lambda: model.graphs.on_stream(raising(FAULT)),
    ):
        with pytest.raises(DeviceLostError):
            ask()


@pytest.mark.usefixtures("lost")
def test_a_shape_that_cannot_be_captured_on_a_lost_device_is_its_loss(model, monkeypatch):
    monkeypatch.setattr(StepGraphs, "launch", raising(FAULT))
    with pytest.raises(DeviceLostError):
        model.new_slot(300).prefill([5])


@pytest.mark.usefixtures("lost")
def test_a_device_that_is_full_is_not_lost(model):
    with pytest.raises(torch.OutOfMemoryError):
        model.graphs.on_stream(raising(torch.OutOfMemoryError("2 GiB")))


def test_an_error_that_the_device_survives_is_not_its_loss(model, monkeypatch):
    slot = model.new_slot(300)
    with monkeypatch.context() as patch:
        patch.setattr(EagerLaunch, "start", raising(RuntimeError("an odd shape")))
        with pytest.raises(RuntimeError, match="an odd shape"):
            slot.prefill([5])
    slot.begin(ORDER)
    assert len(slot.finish().chosen) == 1
