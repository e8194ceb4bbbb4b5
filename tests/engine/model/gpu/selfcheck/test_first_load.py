"""The first load checks a model as a whole and keeps what it finds; the second one only reads it."""

import os
import subprocess
from dataclasses import replace

import pytest
import torch

from engine.config import Sampling
from engine.drafting.drafter import Drafter
from engine.errors import DeviceLostError
from engine.model.gpu.selfcheck import check, first_load
from engine.model.gpu.selfcheck.check import FormCheck
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.key import key_of
from engine.model.gpu.selfcheck.rows import Extent
from engine.model.gpu.selfcheck.verdict import Verdict, VerdictFile, kept_verdicts
from engine.model.gpu.step_graphs import warm_up
from engine.progress import Progress
from kernels.operations import OPERATIONS, PORTABLE
from tests.support.faults import (
    STAND_INS,
    Race,
    in_one_order,
    leaking,
    planted,
    too_large,
    wrong_order,
    wrong_row,
)
from tests.support.gpu_models import gpu_qwen2
from tests.support.said import Said
from tests.support.steps import written_behind

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = Extent((40,), 8, 3)
PROMPT = list(range(20, 57))


@pytest.fixture(autouse=True)
def _one_order():
    with in_one_order():
        yield


@pytest.fixture
def load(reference, tmp_path):
    """Loads a model with the cache that all loads of a test share."""

    def load(operations=STAND_INS, progress=None, dtype=torch.bfloat16):
        model = gpu_qwen2(reference, dtype=dtype, operations=operations)
        settled = settle(model, tmp_path, progress or Progress(), SMALL)
        free = settled.model.arena.free_positions
        assert free == settled.model.arena.positions, "the check keeps no room"
        assert settled.model.arena.keys.isfinite().all(), "nor NaN"
        return settled

    return load


@pytest.fixture
def unchecked(monkeypatch):
    """From when it is called on, whatever is checked fails the test."""

    def forbid():
        monkeypatch.setattr(FormCheck, "run", lambda *_: pytest.fail("it was checked again"))

    return forbid


def test_the_second_load_checks_nothing(load, unchecked):
    first, second = Said(), Said()
    verdict = load(progress=first).verdict
    unchecked()
    model, again = load(progress=second)
    assert again == verdict
    assert first.tasks == ["compiling the GPU's steps", "checking the kernels"]
    assert not second.tasks
    sentence = "the kernels passed their check; the text is the same with lookahead and without"
    assert first.sentences == second.sentences == [sentence] == [model.checked]


def test_kernels_are_checked_once_they_can_be_compiled_and_not_run_where_they_cannot(load):
    for _ in range(2):
        portable, verdict = load(PORTABLE)
        assert (portable.graphs.forward.operations, verdict.runs) == (PORTABLE, "pytorch")
        model, verdict = load()
        assert (model.graphs.forward.operations, verdict.runs) == (STAND_INS, "kernels")


@pytest.fixture(scope="module")
def by_pytorch(reference):
    with in_one_order():
        return written(gpu_qwen2(reference, dtype=torch.bfloat16, operations=PORTABLE))


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        *((one, wrong_row) for one in OPERATIONS),
        *(("gate_up", one) for one in (wrong_order, leaking, too_large, Race())),
        *(("batch_attention", one) for one in (leaking, Race())),
    ],
)
def test_where_an_operation_is_wrong_the_text_is_that_of_pytorch(
    load, unchecked, monkeypatch, by_pytorch, operation, fault
):
    monkeypatch.setattr(first_load, "has_equal_rows", lambda *_: True)  # PyTorch's own, as above
    wrong = planted(operation, fault)
    model, verdict = load(wrong)
    assert (verdict.runs, list(verdict.failed)) == ("pytorch", ["kernels"])
    assert model.graphs.forward.operations is PORTABLE
    assert (model.row_buckets, model.most_rows) == ((16, 128), 16)
    assert "PyTorch runs the model in place of our kernels, and a step takes " in model.checked
    assert written(model) == by_pytorch
    unchecked()
    assert load(wrong).verdict == verdict


def written(model):
    return written_behind(model, PROMPT, Drafter(), Sampling(), 12)


def test_keys_whose_bits_depend_on_the_piece_of_the_prompt_are_found(load):
    def reading_otherwise(*arguments):
        STAND_INS.project_qkv(*arguments)
        batch, keys = arguments[4], arguments[6]
        if batch.capacity >= 64:
            start = int(batch.bases[0] + batch.lengths[0])
            there = keys[:, start : start + int(batch.num_rows[0])]
            there.copy_((there.contiguous().view(torch.int16) + 1).view(keys.dtype))

    verdict = load(replace(STAND_INS, project_qkv=reading_otherwise)).verdict
    assert "have other bits" in verdict.failed["kernels"]


def test_a_kernel_that_does_not_compile_is_told_of_without_folders(load):
    def broken(*_):
        raise RuntimeError("PTX: /home/somebody/kernels/gate_up.py:3: out of registers")

    verdict = load(replace(STAND_INS, gate_up=broken)).verdict
    assert verdict.failed == {"kernels": "RuntimeError: PTX: gate_up.py:3: out of registers"}
    assert "a step takes longer: RuntimeError: PTX" in verdict.sentence


def test_a_device_whose_pytorch_gives_rows_other_bits_is_told_of(load, monkeypatch):
    monkeypatch.setattr(first_load, "has_equal_rows", lambda *_: False)
    assert "the text may differ in places" in load(planted("gate_up", wrong_row)).model.checked


@pytest.fixture
def early(monkeypatch):
    """A CPU stands for a device that starts kernels early; returns how to say which those are."""

    def be(operations):
        monkeypatch.setattr(first_load, "can_start_early", lambda _: True)
        monkeypatch.setattr(first_load, "operations_for", lambda *_, **__: operations)

    be(replace(STAND_INS))
    return be


@pytest.mark.usefixtures("early")
def test_kernels_start_early_where_that_changes_no_bit(load):
    model, verdict = load()
    assert (verdict.runs, verdict.failed) == ("early", {})
    assert model.graphs.forward.operations is not STAND_INS


def test_kernels_whose_early_start_is_a_race_start_late(load, early, unchecked):
    early(planted("skinny_matmul", Race()))
    model, verdict = load()
    assert (verdict.runs, list(verdict.failed)) == ("kernels", ["early"])
    assert model.graphs.forward.operations is STAND_INS
    assert "passed their check, but none starts early, which costs some speed: " in model.checked
    unchecked()
    assert load().verdict == verdict


def test_early_starts_that_change_every_run_alike_are_found(load, early):
    early(planted("gate_up", too_large))
    assert load().verdict.failed["early"].endswith("where kernels start early")


def test_a_form_that_cannot_be_captured_is_not_used_and_others_are_captured(
    load, early, unchecked, monkeypatch
):
    def refused(graphs, progress):
        warm_up(graphs, progress)
        if graphs.forward.operations is not STAND_INS:
            graphs.note = "some steps run kernel by kernel: operation not permitted"

    monkeypatch.setattr(first_load, "warm_up", refused)
    verdict = load().verdict
    assert verdict.runs == "kernels"
    assert "operation not permitted" in verdict.failed["early"]
    unchecked()
    assert load().verdict == verdict


def fatal(*_):
    raise DeviceLostError("illegal address")


def test_what_takes_the_device_down_is_not_run_again(load, early):
    early(replace(STAND_INS, gate_up=fatal))
    lost = replace(STAND_INS, lm_head=fatal)
    for _ in range(2):
        with pytest.raises(DeviceLostError):
            load(lost)
    never = replace(STAND_INS, lm_head=lambda *_: pytest.fail("it was run again"))
    early(never)
    verdict = load(never).verdict
    reason = "they take the device down: illegal address"
    assert verdict.failed == {"early": reason, "kernels": reason}
    assert verdict.runs == "pytorch"


def test_a_check_that_is_stopped_blames_nothing(load, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FormCheck, "run", stopped)
        with pytest.raises(KeyboardInterrupt):
            load()
    assert load().verdict.runs == "kernels"


@pytest.mark.usefixtures("early")
def test_what_ended_the_process_is_not_run_again(load, reference, tmp_path, unchecked):
    key = key_of(gpu_qwen2(reference, dtype=torch.bfloat16).graphs.forward)
    VerdictFile.of(tmp_path, key).write(Verdict(key, begun="early"))
    verdict = load().verdict
    assert list(verdict.failed) == ["early"]
    assert verdict.failed["early"].startswith("the process ended while they were checked")
    assert verdict.runs == "kernels"
    VerdictFile.of(tmp_path, key).write(Verdict(key, failed=verdict.failed, begun="kernels"))
    unchecked()
    assert load().verdict.runs == "pytorch"


@pytest.mark.parametrize(
    ("error", "runs"),
    [
        (torch.OutOfMemoryError("no memory"), "kernels"),
        (RuntimeError("Triton Error [CUDA]: out of memory"), "kernels"),
        (ImportError("failed to map segment from shared object"), "pytorch"),
        (AssertionError("libcuda.so cannot be found"), "pytorch"),
        (subprocess.CalledProcessError(1, ["gcc"]), "pytorch"),
        (OSError("no space left on device"), "pytorch"),
    ],
)
@pytest.mark.usefixtures("early")
def test_what_the_machine_let_nobody_check_is_checked_at_the_next_load(
    load, monkeypatch, error, runs
):
    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(FormCheck, "run", fail)
        model, verdict = load()
    assert (verdict.runs, verdict.failed, verdict.is_lasting) == (runs, {}, False)
    assert "no check was possible: " in model.checked
    assert model.checked.endswith("the next load checks again")
    monkeypatch.setattr(FormCheck, "run", lambda *_: "")
    assert load().verdict.runs == "early"


def test_numbers_are_compared_with_those_of_pytorch_in_float32(load, monkeypatch):
    """What PyTorch rounds in bfloat16 would hide what a kernel gets wrong."""
    run, compared = FormCheck.run, []

    def noted(check, progress):
        compared.append((check.model.graphs.dtype, check.pytorch.graphs.dtype))
        return run(check, progress)

    monkeypatch.setattr(FormCheck, "run", noted)
    assert load().verdict.runs == "kernels"
    assert compared == [(torch.bfloat16, torch.float32)]


def test_without_memory_for_pytorch_bits_alone_are_compared(load, monkeypatch):
    def greedy(*_):
        raise torch.OutOfMemoryError("2 GiB")

    monkeypatch.setattr(check, "compare_numbers", greedy)
    verdict = load().verdict
    assert (verdict.runs, verdict.is_lasting) == ("kernels", True)
    assert "PyTorch found no memory to compare numbers with" in verdict.sentence


def test_the_latest_load_is_the_one_that_is_told_of(load, tmp_path):
    first, second = load().verdict, load(dtype=torch.float32).verdict
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (0, 0))
    assert load().verdict == first
    assert kept_verdicts(tmp_path)[-1] == first != second


def test_which_matrix_has_which_form_is_of_the_verdict(reference):
    def key(*forms):
        forward = gpu_qwen2(reference, operations=STAND_INS).graphs.forward
        first, *others = forward.weights.layers
        qkv, o, gate_up, down = (
            replace(matrix, quantization=form)
            for matrix, form in zip(first.matrices, forms, strict=True)
        )
        held = replace(first, qkv=qkv, o=o, gate_up=gate_up, down=down)
        return key_of(replace(forward, weights=replace(forward.weights, layers=(held, *others))))

    assert key("q4_k", "q4_k", "q4_k", "q6_k") != key("q6_k", "q6_k", "q6_k", "q4_k")
