"""PyTorch where there are no kernels: the same text with drafts and without, and no waiting."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import Sampling
from engine.drafting.budget import Budget, StepCost
from engine.errors import ConfigurationError
from engine.learning import Learning
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.cpu.fit import Choice, CpuModel
from engine.model.device import DeviceChoice, DeviceUnfitError
from engine.model.gpu import loading
from engine.model.gpu.buffers import Outputs, StepShape
from engine.model.gpu.flight import GpuFlight
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.rows import Extent, has_equal_rows
from engine.model.loader import load_model
from engine.model.token_tree import TokenTree
from engine.progress import Progress
from kernels import batch_attention as attention
from kernels import product as products
from kernels.operations import PORTABLE
from kernels.product import product
from kernels.weight import pack
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

SAME = "the text is the same with lookahead and without"
MAC = DeviceChoice("cpu:0", "A GPU", "our kernels are for NVIDIA GPUs")


FEW = Extent((40, 125))


def portable(dtype=torch.bfloat16, device="cpu", operations=PORTABLE):
    reference = tiny_model("qwen2", 1, num_attention_heads=6, num_key_value_heads=2, hidden_size=96)
    return gpu_qwen2(reference, dtype=dtype, operations=operations, device=device)


@pytest.fixture(scope="module")
def model():
    return portable()


def test_drafts_stay_within_the_rows_that_one_token_is_padded_to(model):
    assert (model.row_buckets, model.most_rows) == ((16, 128), 16)
    budget = Budget(StepCost({1: 5.0, 128: 5.0}), model.most_rows)
    assert budget.affordable(np.ones(127)) == 15
    budget.share_among(3)
    assert budget.most_nodes == 4
    budget.share_among(17)
    assert budget.most_nodes == 0


def test_its_steps_can_be_timed(model, tmp_path):
    cost = Learning.load(tmp_path, "key", model, Progress()).budget.cost
    assert cost.ms(1) == cost.ms(16)
    assert cost.ms(17) == cost.ms(128)


def test_no_step_waits_for_the_device(monkeypatch):
    """A device without values answers no question: whoever asked one would fail."""
    monkeypatch.setattr(Outputs, "download", lambda self: None)
    model = portable(device="meta")
    slots = [model.new_slot(900), model.new_slot(300)]
    slots[0].length, slots[1].length = 700, 3
    tree = TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 0, 2], np.int32))
    drawn = Sampling(0.5)
    steps = [StepInput(slot, tree, drawn, wants_logits=True) for slot in slots]
    model.begin(steps)
    for step in steps:
        step.is_dropped = True  # there is nothing to be fetched
    slots[0].commit([0, 2, 3])
    model.begin([StepInput(slots[0], tree, is_dropped=True)])
    model.begin([StepInput(slots[1], TokenTree.chain(range(7, 107)), has_head=False)])
    assert StepShape(16, 4, is_sampled=True, has_logits=True) in model.graphs._launches
    assert StepShape(128, 1, has_head=False) in model.graphs._launches


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model on disk, for a CPU that stands for a GPU with 4 GB."""
    monkeypatch.setattr(loading, "free_bytes", lambda device: 4_000_000_000)
    return str(save_model(tiny_model("qwen2", 1), tmp_path / "model"))


@pytest.fixture
def gpu(monkeypatch):
    """The device that is there is one that our kernels do not run on."""
    monkeypatch.setattr(DeviceChoice, "is_cpu", property(lambda self: self.why != ""))
    monkeypatch.setattr(DeviceChoice, "of", lambda name: MAC)


def test_a_device_without_kernels_runs_the_model_by_pytorch(folder, tmp_path, gpu):
    loaded = load_model(folder, tmp_path, Progress(), device_name="mps")
    place = f"A GPU, by PyTorch: our kernels are for NVIDIA GPUs; {SAME}"
    assert loaded.place == place
    assert isinstance(loaded.causal_lm, GpuQwen2)
    loaded.causal_lm.graphs.note = "new steps run kernel by kernel: no memory"
    assert loaded.place == f"{place}; new steps run kernel by kernel: no memory"
    assert loaded.causal_lm.dtype_name == "bfloat16"
    assert loaded.causal_lm.most_rows == 16
    slot = loaded.causal_lm.new_slot(300)
    prefill(loaded.causal_lm, slot, [5, 6, 7])
    assert run_step(loaded.causal_lm, StepInput(slot, TokenTree.chain([9]))).step_rows == 1


def fail_to_run(*_):
    raise NotImplementedError("aten::something is not there for this device\nadvice")


@pytest.mark.parametrize("name", ["auto", "mps"])
def test_a_device_that_torch_cannot_run_it_on_is_passed_over_or_named(
    folder, tmp_path, gpu, monkeypatch, name
):
    monkeypatch.setattr(loading, "run_step", fail_to_run)
    said = "torch cannot run the model on cpu:0: aten::something is not there for this device"
    if name == "mps":
        with pytest.raises(DeviceUnfitError, match=said):
            load_model(folder, tmp_path, Progress(), device_name=name)
        return
    loaded = load_model(folder, tmp_path, Progress(), device_name=name)
    assert loaded.place == f"CPU ({said})"
    assert loaded.causal_lm.dtype_name == "int8"


def test_where_the_gpu_is_passed_over_the_model_is_the_cpus(folder, tmp_path, gpu, monkeypatch):
    """Not the large one that was picked for the GPU."""
    large = str(save_model(tiny_model("qwen2", 2), tmp_path / "large"))
    monkeypatch.setattr("engine.model.gpu.fit.picked", lambda choice, dtype: (large, "bfloat16"))
    monkeypatch.setattr(loading, "run_step", fail_to_run)
    small = Choice(CpuModel(folder, "0.5b", 0.0, most_ms=0.0))
    loaded = load_model(
        "auto", tmp_path, Progress(), device_name="auto", choose_for_cpu=lambda: small
    )
    assert (loaded.name, loaded.causal_lm.dtype_name) == ("model", "int8")


def test_what_is_tried_at_first_moves_what_it_keeps():
    """Else a device that cannot do that would be found out by the first branch that is accepted."""
    moved = list[int]()

    def noted(keys, values, batch):
        moved.extend(span.num_kept for span in batch.rows_on_host.spans)
        PORTABLE.kv_commit(keys, values, batch)

    loading.make_ready(portable(operations=replace(PORTABLE, kv_commit=noted)), Progress())
    assert any(moved)


def _in_order_of_rows(x, weight):
    """Row 0 is added up in another order, as where a device splits some sums."""
    whole = product(x, weight)
    half = x.shape[1] // 2
    parts = [
        product(x[:1, cut].contiguous(), pack(weight.values[:, cut].contiguous(), "float"))
        for cut in (slice(half), slice(half, None))
    ]
    whole[:1] = parts[0] + parts[1]
    return whole


def test_a_device_whose_rows_depend_on_their_place_is_found(model, monkeypatch):
    assert has_equal_rows(model, FEW)
    monkeypatch.setattr(products, "product", _in_order_of_rows)
    assert not has_equal_rows(model, FEW)


def test_a_device_that_runs_many_chunks_of_keys_otherwise_is_found(model, monkeypatch):
    usual = attention._attend
    counts = set()

    def by_number(packed, keys, values, span):
        attended = usual(packed, keys, values, span)
        counts.add(keys.shape[1])
        return attended if keys.shape[1] <= most else 1.01 * attended

    monkeypatch.setattr(attention, "_attend", by_number)
    most = 1000
    assert has_equal_rows(model, FEW)
    most = max(counts)
    assert has_equal_rows(model, FEW)
    assert not has_equal_rows(model, Extent()), "longer texts have more chunks"


def test_a_device_whose_rows_depend_on_another_text_beside_is_found(model, monkeypatch):
    usual = GpuFlight.finish

    def beside(flight):
        is_shared = len(flight.steps) > 1
        outputs = usual(flight)
        for one in outputs:
            if one is not None and one.logits is not None:
                np.add(one.logits, float(is_shared), out=one.logits)
        return outputs

    monkeypatch.setattr(GpuFlight, "finish", beside)
    assert not has_equal_rows(model, FEW)


def test_weights_of_fewer_bits_are_for_our_kernels(folder, tmp_path, gpu):
    with pytest.raises(ConfigurationError, match="dtype int4 is for our kernels, and A"):
        load_model(folder, tmp_path, Progress(), device_name="mps", quantization="int4")
