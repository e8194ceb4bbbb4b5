"""A device is chosen that is there; what is not there is named."""

import pytest
import torch

from engine.errors import ConfigurationError
from engine.model.device import Device
from engine.model.loaded_model import LoadOptions, load_model
from engine.progress import NoProgress


@pytest.fixture
def gpus(monkeypatch):
    """So many GPUs that torch can use."""

    def have(count):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return have


@pytest.mark.parametrize(
    ("count", "name", "device"),
    [
        (0, "auto", "cpu"),
        (0, "cpu", "cpu"),
        (1, "auto", "cuda:0"),
        (1, "cpu", "cpu"),
        (2, "cuda", "cuda:0"),
        (2, "cuda:1", "cuda:1"),
    ],
)
def test_chooses(gpus, count, name, device):
    gpus(count)
    assert str(Device.choose(name).torch_device) == device


@pytest.mark.parametrize(
    ("count", "name", "said"),
    [
        (0, "cuda", "torch sees no GPU here"),
        (0, "cuda:0", "torch sees no GPU here"),
        (1, "cuda:1", "there are 1 GPUs, counted from 0"),
        (1, "tpu", "device tpu is none of auto, cpu, cuda and cuda:N"),
    ],
)
def test_names_what_is_not_there(gpus, count, name, said):
    gpus(count)
    with pytest.raises(ConfigurationError, match=said):
        Device.choose(name)


@pytest.mark.parametrize(
    ("dtype", "form"),
    [(None, "float"), ("bfloat16", "float"), ("fp8", "fp8"), ("int4", "int4")],
)
def test_a_gpu_holds_weights_in_three_forms(gpus, dtype, form):
    gpus(1)
    assert Device.choose("cuda").form(dtype) == form


def test_a_form_of_the_other_kind_of_machine_is_refused(gpus, tmp_path):
    gpus(1)
    with pytest.raises(ConfigurationError, match="int8 is for the CPU; a GPU holds bfloat16, fp8"):
        load_model(LoadOptions(None, "int8", "cuda"), tmp_path, NoProgress())
    with pytest.raises(ConfigurationError, match="int4 is for a GPU, and the model runs on the"):
        load_model(LoadOptions(None, "int4", "cpu"), tmp_path, NoProgress())
