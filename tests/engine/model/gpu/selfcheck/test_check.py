"""Every fault that is planted in an operation is found, and none where there is none."""

import re
from dataclasses import replace

import pytest
import torch
from triton import knobs

from engine.model.gpu.selfcheck.check import OPERATIONS, Extent, OperationCheck
from engine.model.gpu.selfcheck.companies import CheckedTree
from engine.model.gpu.selfcheck.subject import Subject
from kernels.operations import PORTABLE, operations_for
from tests.support.faults import (
    STAND_INS,
    Fault,
    Race,
    in_one_order,
    leaking,
    planted,
    wrong_order,
    wrong_row,
)
from tests.support.fixed_order import products_in_one_order
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

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
        intermediate_size=96,
        num_hidden_layers=2,
    )


def check_of(reference, operations, extent=SMALL, **options):
    model = gpu_qwen2(reference, dtype=torch.bfloat16, operations=operations, **options)
    return OperationCheck(
        model.graphs, Subject(model.graphs.forward, extent.text_len), extent=extent
    )


def found(reference, operations, operation):
    with in_one_order():
        return check_of(reference, operations).finding(operation)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_is_right_stays(reference, operation):
    finding = found(reference, STAND_INS, operation)
    assert not finding.problem
    assert not finding.variance
    assert not finding.is_twin


FAULTS: dict[str, tuple[Fault, str]] = {
    "wrong row": (wrong_row, "PyTorch's|other bits"),
    "wrong order": (wrong_order, "other bits|not PyTorch's"),
    "race": (Race(), "between two runs"),
    "padding": (leaking, "other bits|PyTorch's"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_fault_is_found_and_the_twin_stands_in(reference, operation, fault):
    plant, phrase = FAULTS[fault]
    finding = found(reference, planted(operation, plant), operation)
    assert finding.is_replaced
    assert re.search(phrase, finding.problem)
    assert not finding.variance, "the twin is well"


@pytest.fixture
def few_splits(monkeypatch):
    """The interpreter takes its time for each program."""
    from kernels import batch_attention as sizes
    from kernels.batch_attention import triton_kernel

    for module in (sizes, triton_kernel):
        monkeypatch.setattr(module, "num_splits", lambda kv_heads: 4)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # rows of NaN, interpreted
@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_our_kernels_pass(reference, operation, few_splits):
    extent = Extent(buckets=(1, 4), repeats=1, timings=1, text_len=70)
    operations = operations_for(torch.device("cuda"))
    device = "cpu" if knobs.runtime.interpret else "cuda"
    with products_in_one_order():
        check = check_of(reference, operations, extent, device=device)
        assert check.finding(operation).sentence == ""


def test_a_kernel_that_does_not_compile_is_replaced_with_what_was_said(reference):
    def broken(*_):
        raise RuntimeError("PTX: /home/somebody/kernels/gate_up.py:3: out of registers")

    operations = replace(STAND_INS, gate_up=broken)
    finding = check_of(reference, operations).finding("gate_up")
    assert finding.problem == "RuntimeError: PTX: gate_up.py:3: out of registers"
    assert finding.lost_ms > 0
    assert finding.is_capturable


def test_without_memory_for_the_twin_bits_alone_are_compared(reference, monkeypatch):
    def greedy(*_):
        raise torch.OutOfMemoryError("2 GiB")

    with in_one_order():
        check = check_of(reference, STAND_INS)
        check.twins = replace(PORTABLE, gate_up=greedy)
        finding = check.finding("gate_up")
    assert not finding.is_replaced
    assert "bits alone were compared" in finding.sentence


def test_without_memory_for_what_runs_instead_the_next_load_checks_again(reference):
    def broken(*_):
        raise RuntimeError("out of registers")

    def greedy(*_):
        raise torch.OutOfMemoryError("2 GiB")

    check = check_of(reference, replace(STAND_INS, gate_up=broken))
    check.twins = replace(PORTABLE, gate_up=greedy)
    finding = check.finding("gate_up")
    assert (finding.is_replaced, finding.is_tried) == (True, False)
    assert finding.note == "there was no memory to check what runs instead"


def test_without_memory_for_the_check_the_kernel_stays(reference):
    def greedy(*_):
        raise torch.OutOfMemoryError("2 GiB")

    finding = check_of(reference, replace(STAND_INS, gate_up=greedy)).finding("gate_up")
    assert (finding.problem, finding.note) == ("", "there was no memory to check it")


def test_the_companies_hold_every_node_and_each_kind_of_company():
    tree = CheckedTree(300, 70)
    companies = tree.companies((1, 16, 128))
    assert companies[0].seats[0].nodes == tuple(range(128))
    names = " ".join(company.name for company in companies)
    for kind in ("a tree of 16 rows", "permuted tree padded to 16", "of its own", "4 sequences"):
        assert kind in names
    for company in companies:
        assert sum(len(seat.nodes) for seat in company.seats) <= company.rows


def test_a_permuted_tree_visits_siblings_in_the_other_order():
    tree = CheckedTree(300, 70)
    nodes = tree.turned(128).nodes
    assert sorted(nodes) == list(range(128))
    place = {node: at for at, node in enumerate(nodes)}
    for node in range(1, 128):
        assert place[int(tree.parents[node])] < place[node]
    assert nodes != tuple(range(128))
