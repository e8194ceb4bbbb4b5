"""The doctor repeats what the last load on a GPU found of the kernels."""

from engine.model.gpu.selfcheck.verdict import Finding, Verdict, VerdictFile
from lsp_server.cli.kernel_check import check_kernels


def keep(folder, *findings):
    key = {"device": "NVIDIA H200"}
    VerdictFile.of(folder, key).write(Verdict(key, findings))


def test_without_a_load_on_a_gpu_nothing_is_said(tmp_path):
    assert check_kernels(tmp_path) == []


def test_kernels_that_passed_are_well(tmp_path):
    keep(tmp_path, Finding("gate_up"))
    [check] = check_kernels(tmp_path)
    assert check.state == "ok"
    assert check.what.startswith(
        "on NVIDIA H200 the kernels passed their check; the text is the same"
    )


def test_a_kernel_that_was_replaced_is_a_warning_with_what_to_do(tmp_path):
    keep(tmp_path, Finding("gate_up", "it is wrong", is_twin=True))
    [check] = check_kernels(tmp_path)
    assert check.state == "warning"
    assert "gate_up runs by its formula in PyTorch: it is wrong" in check.what
    assert "foregram bench gpu --check" in check.advice


def test_a_text_that_may_differ_is_a_warning(tmp_path):
    keep(tmp_path, Finding("gate_up", variance="8 rows", is_twin=True))
    assert [check.state for check in check_kernels(tmp_path)] == ["warning"]
