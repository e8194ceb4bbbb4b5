"""The doctor repeats what the last load on a GPU found of the kernels."""

from engine.model.gpu.selfcheck.verdict import Verdict, VerdictFile
from lsp_server.cli.kernel_check import check_kernels

KEY = {"device": "NVIDIA H200"}


def check_of(folder, **found):
    VerdictFile.of(folder, KEY).write(Verdict(KEY, **found))
    [check] = check_kernels(folder)
    return check


def test_without_a_load_on_a_gpu_nothing_is_said(tmp_path):
    assert check_kernels(tmp_path) == []


def test_kernels_that_passed_are_well(tmp_path):
    check = check_of(tmp_path, runs="early")
    assert check.state == "ok"
    assert check.what.startswith(
        "on NVIDIA H200 the kernels passed their check; the text is the same"
    )


def test_a_form_that_is_not_used_is_a_warning_with_what_to_do(tmp_path):
    check = check_of(tmp_path, runs="pytorch", failed={"kernels": "it is wrong"}, slowdown=2.0)
    assert check.state == "warning"
    assert "a step takes 2.0 times as long: it is wrong" in check.what
    assert "foregram bench gpu --check" in check.advice


def test_a_text_that_may_differ_is_a_warning(tmp_path):
    assert check_of(tmp_path, runs="pytorch", is_text_equal=False).state == "warning"
