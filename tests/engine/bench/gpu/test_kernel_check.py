"""The check of the kernels as a report, over a tiny model on the CPU."""

from dataclasses import replace

from engine.bench.gpu.kernel_check import GpuCheck, check_kernels
from engine.bench.gpu.tables import section_table
from engine.model.gpu.selfcheck.check import OPERATIONS
from engine.progress import NoProgress


def test_the_check_is_all_that_runs(machine, inputs, sizes):
    check = GpuCheck(machine, inputs, NoProgress(), sizes)
    assert list(check.run()) == ["kernels_tiny_bf16"]
    assert check.findings.failures == {}
    assert section_table("kernels_tiny_bf16", check.findings) is not None


def test_the_check_is_of_weights_as_they_are_held(machine, inputs, sizes):
    held = replace(inputs.shapes[0], quantization="int4")
    check = GpuCheck(machine, replace(inputs, shapes=(held,)), NoProgress(), sizes)
    assert list(check.run()) == ["kernels_tiny_int4"]
    assert check.findings.failures == {}


def test_every_operation_is_reported_with_what_was_checked(lab, shape):
    found = check_kernels(lab, shape, (1, 4))
    assert [case.operation for case in found.cases] == list(OPERATIONS)
    assert {case.runs for case in found.cases} == {"PyTorch"}, "on a CPU there are no kernels"
    assert found.notes[0].startswith("PyTorch runs all of it")
    assert "hidden_size 128" in found.key["shape"]


def test_what_a_layer_costs_counts_for_all_layers(lab, shape, monkeypatch):
    from engine.bench.gpu import kernel_check
    from engine.model.gpu.selfcheck.verdict import Finding, Verdict

    findings = tuple(Finding(name, "slow", lost_ms=1.0) for name in ("gate_up", "lm_head"))
    monkeypatch.setattr(kernel_check, "settle", lambda *_: Verdict({}, findings))
    deep = replace(shape, config=replace(shape.config, num_layers=28))
    found = check_kernels(lab, deep, (1,))
    assert [case.lost_ms_a_step for case in found.cases] == [14.0, 1.0]
