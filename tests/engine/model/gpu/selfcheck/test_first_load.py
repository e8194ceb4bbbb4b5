"""The first load checks and keeps what it finds; the second one only reads it."""

import os
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from engine.config import Sampling
from engine.drafting.drafter import NoDrafts
from engine.errors import DeviceLostError
from engine.model.causal_lm import prefill
from engine.model.gpu.selfcheck import first_load
from engine.model.gpu.selfcheck.check import OPERATIONS, OperationCheck
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.key import key_of
from engine.model.gpu.selfcheck.replays import replays_agree
from engine.model.gpu.selfcheck.verdict import Finding, kept_verdicts
from engine.model.gpu.step_graphs import StepGraphs
from engine.progress import NoProgress
from kernels.operations import PORTABLE
from tests.support.faults import (
    STAND_INS,
    Race,
    in_one_order,
    leaking,
    planted,
    wrong_order,
    wrong_row,
)
from tests.support.gpu_models import gpu_qwen2
from tests.support.steps import decoded, decoder_behind, text_of
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")
PROMPT = list(range(20, 57))


@pytest.fixture(scope="module")
def reference():
    return tiny_model("qwen2", 1, num_attention_heads=4, num_key_value_heads=2, hidden_size=64)


@pytest.fixture(autouse=True)
def _one_order():
    with in_one_order():
        yield


def model_of(reference, operations):
    return gpu_qwen2(reference, dtype=torch.bfloat16, operations=operations)


class Said(NoProgress):
    def __init__(self):
        self.tasks, self.sentences = [], []

    def begin(self, task, total):
        self.tasks.append(task)

    def tell(self, sentence):
        self.sentences.append(sentence)


def test_the_second_load_checks_nothing(reference, tmp_path, monkeypatch):
    first, second = Said(), Said()
    found = settle(model_of(reference, STAND_INS), tmp_path, first)
    monkeypatch.setattr(OperationCheck, "finding", lambda *_: pytest.fail("it was checked again"))
    model = model_of(reference, STAND_INS)
    assert settle(model, tmp_path, second) == found
    assert (first.tasks, second.tasks) == (["checking the kernels"], [])
    assert first.sentences == second.sentences == [model.checked]
    assert "passed their check; the text is the same" in model.checked


def test_the_latest_load_is_the_one_that_is_told_of(reference, tmp_path):
    def load(dtype):
        return settle(
            gpu_qwen2(reference, dtype=dtype, operations=STAND_INS), tmp_path, NoProgress()
        )

    first, second = load(torch.bfloat16), load(torch.float32)
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (0, 0))
    assert load(torch.bfloat16) == first
    assert kept_verdicts(tmp_path)[-1] == first != second


def test_another_model_is_checked_for_itself(reference, tmp_path):
    said = Said()
    for dtype in (torch.bfloat16, torch.float32):
        settle(gpu_qwen2(reference, dtype=dtype, operations=STAND_INS), tmp_path, said)
    assert len(said.tasks) == 2


def test_which_matrix_has_which_form_is_of_the_verdict(reference):
    def key(*forms):
        forward = model_of(reference, STAND_INS).graphs.forward
        first, *others = forward.weights.layers
        qkv, o, gate_up, down = (
            replace(matrix, quantization=form)
            for matrix, form in zip(first.matrices, forms, strict=True)
        )
        held = replace(first, qkv=qkv, o=o, gate_up=gate_up, down=down)
        return key_of(replace(forward, weights=replace(forward.weights, layers=(held, *others))))

    assert key("q4_k", "q4_k", "q4_k", "q6_k") != key("q6_k", "q6_k", "q6_k", "q4_k")


@pytest.mark.parametrize(
    ("error", "runs_twin"),
    [
        (torch.OutOfMemoryError("no memory"), False),
        (RuntimeError("Triton Error [CUDA]: out of memory"), False),
        (ImportError("failed to map segment from shared object"), True),
        (AssertionError("libcuda.so cannot be found"), True),
        (subprocess.CalledProcessError(1, ["gcc"]), True),
        (OSError("no space left on device"), True),
    ],
)
def test_what_the_machine_let_nobody_check_is_checked_again(
    reference, tmp_path, monkeypatch, error, runs_twin
):
    usual = OperationCheck._checked

    def fails(check, operation, kernels):
        if operation == "gate_up":
            raise error
        return usual(check, operation, kernels)

    monkeypatch.setattr(OperationCheck, "_checked", fails)
    model = model_of(reference, STAND_INS)
    verdict = settle(model, tmp_path, NoProgress())
    assert verdict.replaced == (("gate_up",) if runs_twin else ())
    assert "the kernels passed their check" not in model.checked
    assert "as far as was checked: the next load checks again" in model.checked
    tried = list[str]()

    def noted(check, operation, kernels):
        tried.append(operation)
        return usual(check, operation, kernels)

    monkeypatch.setattr(OperationCheck, "_checked", noted)
    for _ in range(2):
        again = settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
        assert again.is_lasting
        assert not again.replaced
    assert tried == ["gate_up"], "all others were checked before"


@pytest.mark.parametrize("fault", [wrong_row, wrong_order, leaking, "race"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_text_is_that_of_the_twin_where_a_kernel_is_wrong(
    reference, tmp_path, operation, fault
):
    plant = Race() if fault == "race" else fault
    model = model_of(reference, planted(operation, plant))
    verdict = settle(model, tmp_path, NoProgress())
    assert verdict.replaced == (operation,)
    assert getattr(model.graphs.forward.operations, operation) is getattr(PORTABLE, operation)
    assert f"{operation} runs by its formula" in model.checked
    assert written(model) == written(model_of(reference, STAND_INS))


def written(model):
    slot = model.new_slot(len(PROMPT) + 200)
    prefill(model, slot, PROMPT[:-1])
    decoder = decoder_behind(slot, NoDrafts(), Sampling(), PROMPT, 12)
    return text_of(decoded(model, decoder))


def test_what_takes_the_device_down_is_not_tried_again(reference, tmp_path, monkeypatch):
    usual, tried = OperationCheck.finding, []

    def lost(check, operation):
        tried.append(operation)
        if operation == "gate_up":
            raise DeviceLostError("illegal address")
        return usual(check, operation)

    monkeypatch.setattr(OperationCheck, "finding", lost)
    with pytest.raises(DeviceLostError):
        settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    tried.clear()
    fatal = replace(STAND_INS, gate_up=lambda *_, **__: pytest.fail("it was run again"))
    model = model_of(reference, fatal)
    verdict = settle(model, tmp_path, NoProgress())
    assert verdict.replaced == ("gate_up",)
    assert "it takes the device down: illegal address" in model.checked
    assert "gate_up" not in tried
    assert model.graphs.forward.operations.gate_up is PORTABLE.gate_up


def test_what_takes_the_device_down_is_not_run_though_its_twin_found_no_memory(
    reference, tmp_path, monkeypatch
):
    """Else each third load would lose the device."""
    usual = OperationCheck.finding

    def lost(check, operation):
        if operation == "gate_up":
            raise DeviceLostError("illegal address")
        return usual(check, operation)

    def greedy(*_):
        raise torch.OutOfMemoryError("2 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(OperationCheck, "finding", lost)
        with pytest.raises(DeviceLostError):
            settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    fatal = replace(STAND_INS, gate_up=lambda *_, **__: pytest.fail("it was run again"))
    with monkeypatch.context() as patch:
        patch.setattr(OperationCheck, "_variance", greedy)
        verdict = settle(model_of(reference, fatal), tmp_path, NoProgress())
    assert "no memory to check what runs instead" in verdict.sentence
    assert settle(model_of(reference, fatal), tmp_path, NoProgress()).replaced == ("gate_up",)


def graphs_of(reference, operations):
    return model_of(reference, operations).graphs


def test_replays_agree_where_kernels_are_right(reference):
    plain, early = (graphs_of(reference, STAND_INS) for _ in range(2))
    early.forward = replace(early.forward, arena=plain.forward.arena)
    assert replays_agree(plain, early, replays=3)
    assert not plain.forward.arena.keys.any(), "the cache is left as it was"


def test_a_replay_that_differs_is_found(reference):
    plain, early = graphs_of(reference, STAND_INS), graphs_of(reference, planted("lm_head", Race()))
    early.forward = replace(early.forward, arena=plain.forward.arena)
    assert not replays_agree(plain, early, replays=3)


@pytest.fixture
def _early(monkeypatch):
    """A CPU stands for the device: there both ways to launch are one."""
    monkeypatch.setattr(first_load, "_has_kernels", lambda graphs: True)
    monkeypatch.setattr(first_load, "compile_ahead", lambda *_, **__: [])
    monkeypatch.setattr(first_load, "can_start_early", lambda device: True)


@pytest.mark.usefixtures("_early")
def test_kernels_that_do_not_run_when_started_early_are_not(reference, tmp_path, monkeypatch):
    def refused(plain, early):
        raise RuntimeError("the driver knows no such launch")

    monkeypatch.setattr(first_load, "replays_agree", refused)
    verdict = settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    assert verdict.is_whole
    assert not verdict.is_programmatic


@pytest.mark.usefixtures("_early")
def test_kernels_start_early_where_their_replays_agree(reference, tmp_path, monkeypatch):
    asked = []

    def agree(plain, early):
        asked.append((plain, early))
        return True

    monkeypatch.setattr(first_load, "replays_agree", agree)
    verdict = settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    assert verdict.is_programmatic
    [(plain, early)] = asked
    assert isinstance(plain, StepGraphs)
    assert plain.forward.arena is early.forward.arena


@pytest.mark.usefixtures("_early")
def test_what_ends_the_compiler_is_never_run(reference, tmp_path, monkeypatch):
    def never(*_, **__):
        pytest.fail("it would end the process")

    gate_up = SimpleNamespace(only="gate_up", is_programmatic=False)
    early = SimpleNamespace(only="lm_head", is_programmatic=True)
    monkeypatch.setattr(first_load, "compile_ahead", lambda *_, **__: [gate_up, early])
    monkeypatch.setattr(first_load, "replays_agree", never)
    for _ in range(2):
        model = model_of(reference, replace(STAND_INS, gate_up=never))
        verdict = settle(model, tmp_path, NoProgress())
        assert verdict.replaced == ("gate_up",)
        assert not verdict.is_programmatic
        assert verdict.is_lasting
        assert "gate_up runs by its formula in PyTorch" in model.checked
        assert model.checked.count("its compiler ends the whole process") == 1
        monkeypatch.setattr(first_load, "compile_ahead", never)


@pytest.fixture
def looks(_early, monkeypatch):
    """Early starts agree; how often that was looked at, is counted."""
    looked = list[StepGraphs]()

    def agree(_, early):
        looked.append(early)
        return True

    monkeypatch.setattr(first_load, "replays_agree", agree)
    return looked


def test_a_load_that_is_stopped_while_it_looks_for_early_starts_looks_again(
    reference, tmp_path, looks, monkeypatch
):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(first_load, "replays_agree", stopped)
        with pytest.raises(KeyboardInterrupt):
            settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    monkeypatch.setattr(OperationCheck, "finding", lambda *_: pytest.fail("it was checked again"))
    assert settle(model_of(reference, STAND_INS), tmp_path, NoProgress()).is_programmatic
    assert len(looks) == 1


def test_early_starts_that_take_the_device_down_are_not_tried_again(
    reference, tmp_path, looks, monkeypatch
):
    def lost(*_):
        raise DeviceLostError("illegal address")

    with monkeypatch.context() as patch:
        patch.setattr(first_load, "replays_agree", lost)
        with pytest.raises(DeviceLostError):
            settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    assert not settle(model_of(reference, STAND_INS), tmp_path, NoProgress()).is_programmatic
    assert not looks


def test_what_was_found_after_a_failed_capture_is_not_kept(reference, tmp_path, looks, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(first_load, "failed_captures", ["a graph"])
        settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    settle(model_of(reference, STAND_INS), tmp_path, NoProgress())
    assert len(looks) == 2


@pytest.mark.usefixtures("_early")
def test_without_memory_early_starts_are_looked_at_again(reference, tmp_path, monkeypatch):
    answers = [torch.OutOfMemoryError("2 GiB"), None]

    def agree(plain, early):
        if (error := answers.pop(0)) is not None:
            raise error
        return True

    monkeypatch.setattr(first_load, "replays_agree", agree)
    early = [
        settle(model_of(reference, STAND_INS), tmp_path, NoProgress()).is_programmatic
        for _ in range(3)
    ]
    assert early == [False, True, True]


def test_what_is_known_to_take_the_device_down_stays_so_while_others_are_checked_again(
    reference, tmp_path, monkeypatch
):
    """Else a second loss, of another operation, would have it run once more."""
    usual = OperationCheck.finding

    def losing(operation):
        def finding(check, tried):
            if tried == operation:
                raise DeviceLostError("illegal address")
            return usual(check, tried)

        return finding

    def memoryless(check, tried):
        if tried == "lm_head":
            return Finding(tried, note="there was no memory to check it", is_tried=False)
        return usual(check, tried)

    def load(finding):
        with monkeypatch.context() as patch:
            patch.setattr(OperationCheck, "finding", finding)
            return settle(model_of(reference, STAND_INS), tmp_path, NoProgress())

    with pytest.raises(DeviceLostError):
        load(losing("gate_up"))
    assert load(memoryless).replaced == ("gate_up",)
    with pytest.raises(DeviceLostError):
        load(losing("lm_head"))
    assert load(usual).replaced == ("gate_up", "lm_head")
