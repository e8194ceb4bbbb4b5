"""What a GPU needs besides itself is named, and what does not fit is refused, before loading."""

import importlib.util
import shutil

import pytest
import torch

from engine.errors import ConfigurationError, NoSpaceError
from engine.model.converted_model import ConvertedModel
from engine.model.device import Device
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.gpu_loading import load_qwen2, warm_up
from engine.model.loading import prepare
from engine.progress import NoProgress
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


class Said(NoProgress):
    """Remembers the tasks."""

    def __init__(self):
        self.tasks = []

    def begin(self, task, total):
        self.tasks.append((task, total))


@pytest.fixture
def model(tmp_path):
    folder = save_model(tiny_model("qwen2", 1), tmp_path / "model")
    converted = prepare(str(folder), "bfloat16", tmp_path, NoProgress())
    assert isinstance(converted, ConvertedModel)
    return converted


class SmallDevice(Device):
    """The CPU in the place of a GPU with little memory."""

    free_bytes = 1_000_000_000


def load(model, said=None):
    device = SmallDevice(torch.device("cpu"))
    return load_qwen2(model, device, "float", None, said or Said())


def test_without_triton_it_says_what_to_install(model, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'foregram\[gpu\]'"):
        load(model)


def test_without_a_compiler_it_says_what_to_install(model, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigurationError, match="install gcc or clang"):
        load(model)


def test_the_plan_is_made_before_anything_is_loaded(model, monkeypatch):
    monkeypatch.setattr(ConvertedModel, "tensors", lambda self: pytest.fail("it was loaded"))
    with pytest.raises(NoSpaceError, match=r"of 1\.0 GB free"):
        load(model)


def test_the_plan_is_told_and_then_the_model_is_there(model, monkeypatch):
    monkeypatch.setattr(SmallDevice, "free_bytes", 3_000_000_000)
    said = Said()
    network = load(model, said)
    assert [task.split(":")[0] for task, _ in said.tasks] == [
        "GPU memory",
        "placing the weights",
        "compiling the GPU's steps",
    ]
    assert network.reserved_bytes > 0


def test_warming_up_makes_the_steps_of_one_sequence_of_every_kind():
    model = gpu_qwen2(tiny_model("qwen2", 1))
    warm_up(model, NoProgress())
    shapes = set(model.graphs._launches)
    assert len(shapes) == 35
    assert StepShape(64, 1, is_sampled=True, has_logits=True) in shapes
    assert StepShape(128, 1, has_head=False) in shapes
