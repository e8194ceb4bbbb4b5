"""What a GPU needs besides itself is named, and what does not fit is refused, before loading."""

import re
from unittest.mock import Mock

import pytest
import torch

from engine.errors import ConfigurationError, NoSpaceError
from engine.model.device import DeviceChoice
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.loading import load_qwen2
from engine.model.gpu.step_graphs import StepGraphs, warm_up
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.converted_model import ConvertedModel
from engine.progress import Progress
from tests.support.gpu_models import gpu_qwen2
from tests.support.prepared import prepare
from tests.support.said import Said
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

GPU = DeviceChoice("cpu", "A GPU")


@pytest.fixture
def model(tmp_path):
    folder = save_model(tiny_model("qwen2", 1), tmp_path / "model")
    converted = prepare(str(folder), "bfloat16", tmp_path, Progress())
    assert isinstance(converted, ConvertedModel)
    return converted


@pytest.fixture(autouse=True)
def free(monkeypatch):
    """Have the CPU stand for a GPU with so much free memory: little, unless told."""

    def have(num_bytes):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (num_bytes, 0))

    monkeypatch.setattr("engine.model.accelerators._has_headers", lambda: True)
    have(1_000_000_000)
    return have


def load(model, said=None):
    cache_folder = model.folder.parents[1]
    return load_qwen2(model, GPU, "float", None, said or Said(), cache_folder)


def test_the_plan_is_made_before_anything_is_loaded(model, monkeypatch):
    monkeypatch.setattr(ConvertedModel, "tensors", lambda self: pytest.fail("it was loaded"))
    with pytest.raises(NoSpaceError, match=r"of 1\.0 GB free"):
        load(model)


def test_the_plan_is_told_and_then_the_model_is_there(model, free):
    free(3_000_000_000)
    said = Said()
    loaded = load(model, said)
    plan, verdict = said.sentences
    assert re.match(r"GPU memory: weights 0\.0 GB, .* of 3\.0 GB free$", plan)
    assert said.all[0] == plan
    assert said.tasks == [
        "placing the weights",
        "compiling the GPU's steps",
        "checking the kernels",
        "compiling the GPU's steps",
    ]
    assert verdict == loaded.checked
    assert loaded.kv_bytes(1) > 0


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
        load_qwen2(model, GPU, "int4", None, Said(), model.folder)


def test_warming_up_makes_all_steps_of_one_sequence_and_the_plain_ones_of_a_few():
    model = gpu_qwen2(tiny_model("qwen2", 1))
    warm_up(model.graphs, Progress())
    warm = set(model.graphs._launches)
    alone = {shape for shape in warm if shape.sequences == 1}
    assert len(alone) == 36
    assert StepShape(64, 1, is_sampled=True, has_logits=True) in alone
    assert StepShape(128, 1, has_head=False) in alone
    assert warm - alone == {StepShape(rows, 4) for rows in (4, 8, 16, 32, 64, 128)}
