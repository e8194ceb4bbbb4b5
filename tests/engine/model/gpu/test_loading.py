"""What a GPU needs besides itself is named, and what does not fit is refused, before loading."""

import importlib.util
import re
import shutil
from unittest.mock import Mock

import pytest
import torch

from engine.errors import ConfigurationError, NoSpaceError
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.loading import load_qwen2
from engine.model.gpu.step_graphs import StepGraphs, warm_up
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.loaded_model import prepare
from engine.progress import NoProgress
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


class Said(NoProgress):
    """Remembers the tasks and the sentences."""

    def __init__(self):
        self.tasks, self.sentences = [], []

    def begin(self, task, total):
        self.tasks.append((task, total))

    def tell(self, sentence):
        self.sentences.append((len(self.tasks), sentence))


@pytest.fixture
def model(tmp_path):
    folder = save_model(tiny_model("qwen2", 1), tmp_path / "model")
    converted = prepare(str(folder), "bfloat16", tmp_path, NoProgress())
    assert isinstance(converted, ConvertedModel)
    return converted


@pytest.fixture(autouse=True)
def free(monkeypatch):
    """Have the CPU stand for a GPU with so much free memory: little, unless told."""

    def have(num_bytes):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (num_bytes, 0))

    monkeypatch.setattr("engine.model.device._has_headers", lambda: True)
    have(1_000_000_000)
    return have


def load(model, said=None):
    cache_folder = model.folder.parents[1]
    return load_qwen2(model, torch.device("cpu"), "float", None, said or Said(), cache_folder)


@pytest.mark.parametrize(
    ("tool", "advice"),
    [
        ((importlib.util, "find_spec"), r"pip install 'foregram\[gpu\]'"),
        ((shutil, "which"), "install gcc or clang"),
    ],
    ids=["Triton", "a compiler"],
)
def test_without_what_compiles_it_says_what_to_install(model, monkeypatch, tool, advice):
    monkeypatch.setattr(*tool, lambda name: None)
    with pytest.raises(ConfigurationError, match=advice):
        load(model)


def test_the_plan_is_made_before_anything_is_loaded(model, monkeypatch):
    monkeypatch.setattr(ConvertedModel, "tensors", lambda self: pytest.fail("it was loaded"))
    with pytest.raises(NoSpaceError, match=r"of 1\.0 GB free"):
        load(model)


def test_the_plan_is_told_and_then_the_model_is_there(model, free):
    free(3_000_000_000)
    said = Said()
    loaded = load(model, said)
    [(num_tasks, sentence), (_, verdict)] = said.sentences
    assert num_tasks == 0
    assert re.match(r"GPU memory: weights 0\.0 GB, .* of 3\.0 GB free$", sentence)
    assert [task for task, _ in said.tasks] == [
        "placing the weights",
        "compiling the GPU's steps",
        "checking the kernels",
        "compiling the GPU's steps",
    ]
    assert verdict == loaded.checked
    assert loaded.reserved_bytes > 0


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("CUDA error: out of memory")],
)
@pytest.mark.parametrize("place", [(GpuWeights, "place"), (StepGraphs, "launch")])
def test_memory_that_runs_out_while_loading_is_told_with_the_plan(
    model, free, monkeypatch, place, error
):
    """Another process may have taken it since the plan was made."""
    free(3_000_000_000)
    monkeypatch.setattr(*place, Mock(side_effect=error))
    with pytest.raises(NoSpaceError, match=r"ran out while .* of 3\.0 GB free; see in nvidia-smi"):
        load(model)


def test_another_failure_while_loading_stays_what_it_is(model, free, monkeypatch):
    free(3_000_000_000)
    monkeypatch.setattr(GpuWeights, "place", Mock(side_effect=RuntimeError("illegal address")))
    with pytest.raises(RuntimeError, match=r"^illegal address$"):
        load(model)


def test_widths_that_four_bits_cannot_hold_are_refused_with_what_can(model):
    with pytest.raises(ConfigurationError, match=r"multiples of 128 .* one of 32; take dtype fp8"):
        load_qwen2(model, torch.device("cpu"), "int4", None, Said(), model.folder)


@pytest.fixture(scope="module")
def warm_shapes():
    """The shapes of steps that are there once a model is warm."""
    model = gpu_qwen2(tiny_model("qwen2", 1))
    warm_up(model.graphs, NoProgress())
    return set(model.graphs._launches)


def test_warming_up_makes_the_steps_of_one_sequence_of_every_kind(warm_shapes):
    assert sum(shape.sequences == 1 for shape in warm_shapes) == 36
    assert StepShape(64, 1, is_sampled=True, has_logits=True) in warm_shapes
    assert StepShape(128, 1, has_head=False) in warm_shapes


def test_warming_up_makes_the_plain_steps_of_a_few_sequences(warm_shapes):
    shared = {shape for shape in warm_shapes if shape.sequences > 1}
    assert shared == {StepShape(rows, 4) for rows in (4, 8, 16, 32, 64, 128)}
