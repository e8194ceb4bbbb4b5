"""A device is chosen that is there and fit; what is not there, or not fit, is named."""

from types import SimpleNamespace

import pytest
import torch

from engine.errors import ConfigurationError
from engine.model.device import GpuChoice, choose_device, gpu_quantization
from engine.model.loading.loaded_model import load_model
from engine.progress import NoProgress


def gpu(name, capability, **shared):
    """A GPU as torch describes it."""
    major, minor = capability
    return SimpleNamespace(name=name, major=major, minor=minor, **shared)


HOPPER = gpu("NVIDIA H200", (9, 0), shared_memory_per_block_optin=232_448)
ADA = gpu("NVIDIA GeForce RTX 4090", (8, 9), shared_memory_per_block_optin=101_376)
CONSUMER_BLACKWELL = gpu("NVIDIA GeForce RTX 5090", (12, 0), shared_memory_per_block_optin=101_376)
UNTOLD = gpu("NVIDIA H100", (9, 0))


@pytest.fixture
def gpus(monkeypatch):
    """The GPUs that torch can use: so many for our kernels, or those that are given."""

    def have(found):
        there = [HOPPER] * found if isinstance(found, int) else found
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(there))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(there))
        monkeypatch.setattr(torch.cuda, "get_device_properties", there.__getitem__)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda one: there[one.index].name)

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
    assert str(choose_device(name)) == device


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
        choose_device(name)


@pytest.mark.parametrize(
    ("there", "device"),
    [
        ([ADA], "cpu"),
        ([CONSUMER_BLACKWELL], "cpu"),
        ([UNTOLD], "cuda:0"),
        ([ADA, CONSUMER_BLACKWELL, HOPPER], "cuda:2"),
    ],
)
def test_auto_takes_the_first_gpu_that_our_kernels_fit_or_none(gpus, there, device):
    gpus(there)
    assert str(choose_device("auto")) == device


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cuda", "device cuda: NVIDIA GeForce RTX 4090 has compute capability 8.9, and our"),
        ("cuda:0", "kernels need 9.0; device = cpu works"),
        ("cuda:1", "RTX 5090 has 101,376 bytes of shared memory for a block, and our kernels need"),
    ],
)
def test_a_gpu_that_is_asked_for_and_unfit_is_refused_with_what_it_lacks(gpus, name, said):
    gpus([ADA, CONSUMER_BLACKWELL])
    with pytest.raises(ConfigurationError, match=said):
        choose_device(name)


def test_a_gpu_of_amd_is_none(gpus, monkeypatch):
    gpus(1)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert choose_device("auto").type == "cpu"


@pytest.mark.parametrize(
    ("there", "name", "choice"),
    [
        ([], "cuda", GpuChoice()),
        ([HOPPER], "auto", GpuChoice(gpu="NVIDIA H200")),
        ([ADA, HOPPER], "auto", GpuChoice(gpu="NVIDIA H200")),
        ([HOPPER], "cuda:1", GpuChoice(problem="device cuda:1: there are 1 GPUs, counted from 0")),
    ],
)
def test_a_choice_is_told_in_words(gpus, there, name, choice):
    gpus(there)
    assert GpuChoice.of(name) == choice


def test_a_choice_of_no_gpu_says_what_the_first_one_lacks(gpus):
    gpus([ADA])
    assert GpuChoice.of("auto").problem.startswith("NVIDIA GeForce RTX 4090 has compute")
    assert GpuChoice.of("cuda").problem.endswith("device = cpu works")


@pytest.mark.parametrize(
    ("dtype", "form"),
    [(None, "float"), ("bfloat16", "float"), ("fp8", "fp8"), ("int4", "int4")],
)
def test_a_gpu_holds_weights_in_three_forms(dtype, form):
    assert gpu_quantization(dtype) == form


def test_a_form_of_the_other_kind_of_machine_is_refused(gpus, tmp_path):
    gpus(1)
    with pytest.raises(ConfigurationError, match="int8 is for the CPU; a GPU holds bfloat16, fp8"):
        load_model(None, tmp_path, NoProgress(), quantization="int8", device_name="cuda")
    with pytest.raises(ConfigurationError, match="int4 is for a GPU, and the model runs on the"):
        load_model(None, tmp_path, NoProgress(), quantization="int4", device_name="cpu")
