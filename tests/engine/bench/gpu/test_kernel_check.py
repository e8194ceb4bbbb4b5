"""The check of a load as a report, over a tiny model on the CPU."""

from dataclasses import replace

from engine.bench.gpu import kernel_check
from engine.bench.gpu.kernel_check import check_shape
from engine.model.gpu.selfcheck.first_load import settle


def test_a_device_without_kernels_is_checked_and_timed(lab, shape, monkeypatch):
    monkeypatch.setattr(lab, "machine", replace(lab.machine, has_kernels=False))
    found = check_shape(lab, shape)
    (case,) = found.cases
    assert (case.model, case.runs, case.failed) == ("tiny bf16", "pytorch", ())
    assert 0 < case.ms_of_least_rows < case.ms_of_most_rows
    assert found.notes[0].startswith("PyTorch runs all of it; the text ")
    assert "hidden_size 128" in found.key["shape"]


def test_what_fails_is_reported_for_weights_as_they_are_held(lab, shape, monkeypatch):
    def settled(*arguments):
        model, verdict = settle(*arguments)
        verdict.failed["early"] = "a race"
        return model, verdict

    monkeypatch.setattr(kernel_check, "settle", settled)
    (case,) = check_shape(lab, replace(shape, quantization="int4")).cases
    assert case.model == "tiny int4"
    assert "early: a race" in case.failed
