"""A captured step is a list of kernels at fixed addresses: replayed, it says what a fresh run says.

On the CPU the list is recorded as CUDA records it: the calls and the memory that they were given,
once for each shape, and never the Python around them.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from engine.config import Sampling
from engine.drafting.drafter import Drafter
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu import step_graphs
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.launches import CaptureError, GraphMemory, Launch
from engine.model.gpu.step_graphs import ROW_BUCKETS, StepGraphs
from engine.model.token_tree import TokenTree
from kernels.operations import OPERATIONS
from tests.support.adversary import Adversary
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import written_behind
from tests.support.trees import random_tree

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPT = list(range(20, 57))


@dataclass
class Recorder:
    """Notes the calls of operations and copies while it is on."""

    calls: list[partial[Any]]
    is_on: bool = False

    def noting(self, call):
        def noted(*args, **kwargs):
            if self.is_on:
                self.calls.append(partial(call, *args, **kwargs))
            call(*args, **kwargs)

        return noted


class RecordedLaunch:
    """Records one run of a shape, and from then on knows nothing but those calls."""

    def __init__(self, memory, forward, recorder):
        self.memory = memory
        forward.run(memory)
        recorder.calls, recorder.is_on = [], True
        forward.run(memory)
        recorder.is_on = False
        self._calls = recorder.calls

    def start(self):
        for call in self._calls:
            call()

    def wait(self):
        pass


@pytest.fixture
def eager(reference):
    return gpu_qwen2(reference)


@pytest.fixture
def recorded(reference, monkeypatch):
    recorder = Recorder([])
    model = gpu_qwen2(reference)
    forward = model.graphs.forward
    noted = {name: recorder.noting(getattr(forward.operations, name)) for name in OPERATIONS}
    model.graphs.forward = replace(forward, operations=replace(forward.operations, **noted))
    for part, name in ((Inputs, "upload"), (Outputs, "download")):
        monkeypatch.setattr(part, name, recorder.noting(getattr(part, name)))

    eagerly = StepGraphs._make

    def make(graphs, memory):
        if graphs is not model.graphs:
            return eagerly(graphs, memory)
        return RecordedLaunch(memory, graphs.forward, recorder)

    monkeypatch.setattr(StepGraphs, "_make", make)
    return model


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, seed=3)])
def test_replayed_steps_write_what_fresh_ones_write(eager, recorded, sampling):
    plain = written_behind(eager, PROMPT, Drafter(), sampling, 20)
    assert written_behind(recorded, PROMPT, Drafter(), sampling, 20) == plain
    adversary = Adversary(plain, len(PROMPT), eager.vocab_size, 40, 0.7, seed=1)
    assert written_behind(recorded, PROMPT, adversary, sampling, 20)[:20] == plain


@pytest.mark.parametrize("rows", ROW_BUCKETS)
def test_a_shape_forgets_what_its_last_step_held(eager, recorded, rows):
    """A full step of three sequences first, then a narrow one in the same memory."""
    rng = np.random.default_rng(rows)
    trees = [random_tree(rng, max(1, rows // 3), eager.vocab_size) for _ in range(3)]
    last = TokenTree.chain([5] * max(1, rows // 4 + 1))
    told = []
    for model in (eager, recorded):
        slots = [model.new_slot(300) for _ in range(3)]
        for number, slot in enumerate(slots):
            prefill(model, slot, PROMPT[: 10 + number])
        outputs = model.begin(list(map(StepInput, slots, trees))).finish()
        slots[1].commit(outputs[1].path.tolist())
        outputs.append(run_step(model, StepInput(slots[1], last)))
        told.append([(one.chosen.tolist(), one.path.tolist()) for one in outputs])
    assert told[0] == told[1]


def test_a_shape_is_captured_once(recorded):
    launches = [recorded.graphs.launch(StepShape(8, 1)) for _ in range(2)]
    assert launches[0] is launches[1]
    assert recorded.graphs.launch(StepShape(8, 4)) is not launches[0]


def test_an_empty_step_as_it_is_captured_writes_no_keys(recorded):
    recorded.arena.keys.fill_(7.0)
    for rows in ROW_BUCKETS:
        recorded.graphs.launch(StepShape(rows, 1))
    assert (recorded.arena.keys == 7.0).all()


INVALIDATED = "operation failed due to a previous error during capture"


@pytest.fixture
def capturing(eager, monkeypatch):
    """The graphs of a device whose third capture fails."""
    tried = []

    class Capturing(Launch):
        graph = None

        def __init__(self, memory, forward, graphs):
            super().__init__(memory, forward)

        def capture(self, graphs):
            tried.append(self.memory.shape)
            if len(tried) == 3:
                raise CaptureError(INVALIDATED)
            self.graph = "captured"

    monkeypatch.setattr(step_graphs, "Launch", Capturing)
    eager.graphs._graphs = SimpleNamespace(stream=None)
    return eager.graphs


def test_a_step_that_cannot_be_captured_runs_kernel_by_kernel_and_others_are_captured(
    capturing, caplog
):
    launches = [capturing.launch(StepShape(rows, 1)) for rows in (1, 4, 8, 16)]
    assert [one.graph for one in launches] == ["captured", "captured", None, "captured"]
    assert capturing.launch(StepShape(8, 1)) is launches[2]
    said = f"some steps run kernel by kernel, as they cannot be captured: {INVALIDATED}"
    assert caplog.messages == [said] == [capturing.note]


def test_after_a_capture_that_failed_torch_takes_no_memory_for_it(monkeypatch):
    """Else all that is allocated from then on is of that graph's memory."""
    stream, ended = MagicMock(device_index=0), []

    class Refused:
        def __init__(self, graph, **options):
            assert options["capture_error_mode"] == "thread_local"

        def __enter__(self):
            pass

        def __exit__(self, *_):
            raise RuntimeError(INVALIDATED)

    for name in ("Event", "CUDAGraph"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "graph", Refused)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(
        torch._C, "_cuda_endAllocateToPool", lambda *of: ended.append(of), raising=False
    )
    monkeypatch.setattr(torch.cuda, "Stream", lambda _: stream)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 1))
    graphs = GraphMemory(torch.device("cpu"))
    launch = Launch(MagicMock(), MagicMock(), graphs)
    with pytest.raises(CaptureError, match=INVALIDATED):
        launch.capture(graphs)
    assert ended == [(0, (0, 1))]


def test_what_kernels_hand_on_can_be_made_nan(eager):
    eager.graphs.launch(StepShape(4, 1, has_logits=True))
    eager.graphs.fill(np.nan)
    activations = eager.graphs._activations[4]
    assert all(bool(held.isnan().all()) for held in activations.numbers)
    assert eager.graphs._logits.isnan().all()


def test_a_capture_that_a_lost_device_ends_is_its_loss(capturing, monkeypatch):
    def lost(_):
        raise RuntimeError("CUDA error: device-side assert")

    monkeypatch.setattr(StepGraphs, "synchronize", lost)
    capturing.launch(StepShape(1, 1))
    capturing.launch(StepShape(4, 1))
    with pytest.raises(RuntimeError, match="device-side assert"):
        capturing.launch(StepShape(8, 1))
