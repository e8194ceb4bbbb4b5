"""The check of a device without kernels, over a tiny model on the CPU."""

from dataclasses import replace

import pytest
import torch

from engine.bench.gpu.portable_check import PortableCheck, check_pytorch
from engine.bench.gpu.tables import section_table
from engine.errors import NoSpaceError
from engine.model.gpu import row_check
from engine.progress import NoProgress


def test_the_check_is_all_that_runs(machine, inputs, sizes):
    check = PortableCheck(machine, inputs, NoProgress(), sizes)
    assert list(check.run()) == ["pytorch_tiny"]
    assert check.findings.failures == {}
    assert section_table("pytorch_tiny", check.findings) is not None


def test_a_model_is_compared_with_the_formulas_and_its_rows_with_each_other(lab, shape):
    found = check_pytorch(lab, shape)
    (case,) = found.cases
    assert case.error < 1e-3
    said = row_check.UNEQUAL if case.drafts_change_text else row_check.EQUAL
    assert case.ms_of_16_rows > 0
    assert case.ms_of_128_rows > 0
    assert found.notes == (f"tiny: {said}",)


def test_what_does_not_fit_is_not_tried(lab, shape, monkeypatch):
    from engine.bench.gpu import portable_check

    monkeypatch.setattr(lab, "machine", replace(lab.machine, device=torch.device("mps")))
    monkeypatch.setattr(portable_check, "free_bytes", lambda device: 1_000_000)
    with pytest.raises(NoSpaceError, match=r"does not fit the GPU"):
        check_pytorch(lab, shape)
