"""All layers in one launch run where they have the bits of six a layer and are sooner done."""

import re
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch

from engine.model.gpu.activations import Activations
from engine.model.gpu.forward import Forward
from engine.model.gpu.selfcheck import first_load, layers_check
from engine.model.gpu.selfcheck.check import Extent
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.layers_check import launch_finding
from engine.progress import NoProgress
from tests.support.faults import STAND_INS, in_one_order, planted, wrong_row
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = Extent(buckets=(1, 4, 8), repeats=3, timings=1, text_len=70)


@pytest.fixture(scope="module")
def reference():
    return tiny_model(
        "qwen2",
        1,
        num_attention_heads=4,
        num_key_value_heads=2,
        hidden_size=64,
        num_hidden_layers=2,
    )


@pytest.fixture(autouse=True)
def _one_order():
    with in_one_order():
        yield


@dataclass
class StandIn:
    """PyTorch's operations as one launch; in every `late` run the last phase waits for nobody."""

    forward: Forward
    late: int = 0
    runs: int = 0

    def takes(self, rows):
        return rows <= 16

    def run(self, flow, cos_sin, batch, scratch):
        self.runs += 1
        before = flow.hidden.nan_to_num()
        rows, dtype = flow.rows, flow.queries.dtype
        activations = Activations(self.forward.config, rows, dtype, flow.queries.device)
        activations.stream, activations.queries = flow.stream, flow.queries
        activations.attended, activations.mlp_hidden = flow.attended, flow.hidden
        forward = replace(self.forward, persistent=None)
        if self.late and self.runs % self.late == 0:
            usual = forward.operations.gate_up

            def unfinished(stream, weight, out, scratch):
                usual(stream, weight, out, scratch)
                out[:, -8:] = before[:, -8:]  # the last program's tile is read before it is written

            forward = replace(forward, operations=replace(forward.operations, gate_up=unfinished))
        forward.run_layers(batch, activations)


class Refused(StandIn):
    """The driver has no room for so many programs, or the kernel does not compile."""

    def run(self, flow, cos_sin, batch, scratch):
        scratch.arrived[:1] = 1
        raise RuntimeError("too many blocks in cooperative launch")


@pytest.fixture
def measured(monkeypatch):
    """A launch as in a model on a GPU, which takes so many milliseconds, against two."""

    def stand_in(late=0, ms=1.0):
        monkeypatch.setattr(layers_check, "persistent_for", lambda it: StandIn(it, late))
        monkeypatch.setattr(first_load, "persistent_for", lambda it: StandIn(it, late))
        monkeypatch.setattr(first_load, "launch_finding", partial(launch_finding, replays=3))
        monkeypatch.setattr(
            layers_check, "answer_ms", lambda graphs: ms if graphs.forward.persistent else 2.0
        )

    return stand_in


def model_of(reference, operations=STAND_INS):
    return gpu_qwen2(reference, dtype=torch.bfloat16, operations=operations)


def found(reference):
    return launch_finding(model_of(reference).graphs, SMALL, replays=60)


def test_one_launch_is_used_where_it_is_right_and_faster(reference, measured):
    measured()
    finding = found(reference)
    assert finding.is_used
    assert "1 ms with all layers in one launch and 2 ms with 6 launches a layer" in finding.note


def test_it_is_not_used_where_it_gains_nothing(reference, measured):
    measured(ms=1.99)
    assert not found(reference).is_used


@pytest.mark.parametrize("late", [1, 3, 50])
def test_a_barrier_that_is_missing_is_found(reference, measured, late):
    """In every run, in every third, and so seldom that it takes many replays."""
    measured(late)
    finding = found(reference)
    assert not finding.is_used
    assert "other bits" in finding.note or "now and then" in finding.note


@pytest.mark.parametrize("when", ["placed", "run"])
def test_one_that_does_not_compile_or_run_is_not_used_and_says_why(reference, monkeypatch, when):
    def launch(forward):
        if when == "placed":
            raise ValueError("a tensor of a layer starts amid 16 bytes")
        return Refused(forward)

    monkeypatch.setattr(layers_check, "persistent_for", launch)
    graphs = model_of(reference).graphs
    finding = launch_finding(graphs, SMALL, replays=3)
    assert not finding.is_used
    assert re.search(r"^all layers in one launch: \w+Error: .+", finding.note)
    assert not graphs.forward.scratch.arrived.any()


def test_without_such_a_launch_nothing_is_said(reference):
    finding = found(reference)
    assert (finding.is_used, finding.note) == (False, "")


def test_the_first_load_decides_and_the_second_one_knows(
    reference, measured, tmp_path, monkeypatch
):
    measured()
    first, second = model_of(reference), model_of(reference)
    assert settle(first, tmp_path, NoProgress(), SMALL).launch.is_used
    monkeypatch.setattr(
        first_load, "launch_finding", lambda *_: pytest.fail("it was checked again")
    )
    settle(second, tmp_path, NoProgress(), SMALL)
    for model in (first, second):
        assert isinstance(model.graphs.forward.persistent, StandIn)
        assert "all layers in one launch" in model.checked


def test_a_launch_whose_operations_are_wrong_is_not_tried(reference, measured, tmp_path):
    measured()
    model = model_of(reference, planted("gate_up", wrong_row))
    verdict = settle(model, tmp_path, NoProgress(), SMALL)
    assert verdict.replaced == ("gate_up",)
    assert model.graphs.forward.persistent is None
