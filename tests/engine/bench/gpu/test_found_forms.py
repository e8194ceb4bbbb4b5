"""The benchmark measures what a load would run: what the check finds is right."""

from functools import partial

import pytest

from engine.bench.gpu import found_forms
from engine.bench.gpu.cases import Lab
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import random_model
from engine.model.gpu.selfcheck.verdict import Finding, Verdict
from engine.progress import NoProgress
from kernels.operations import REFERENCE
from tests.support.faults import STAND_INS

REPLACED = Verdict({}, (Finding("lm_head", problem="it is wrong", is_twin=True),))


@pytest.fixture
def on_gpu(monkeypatch, machine, bandwidth):
    """A lab whose machine says that it is a GPU, and the shapes that a check was asked for."""
    asked = []

    def found(shape, *_):
        asked.append(shape)
        return REPLACED

    monkeypatch.setattr(Machine, "is_gpu", True)
    monkeypatch.setattr(found_forms, "found", found)
    monkeypatch.setattr(found_forms, "random_model", partial(random_model, operations=STAND_INS))
    return Lab(machine, NoProgress(), bandwidth), asked


def test_a_model_runs_as_a_load_would_leave_it(shape, on_gpu):
    lab, asked = on_gpu
    models = [lab.model(shape, 256) for _ in range(2)]
    for model in models:
        operations = model.graphs.forward.operations
        assert operations.lm_head is REFERENCE.lm_head
        assert operations.skinny_matmul is STAND_INS.skinny_matmul
    assert asked == [shape], "what was found holds for all sections of a run"


def test_what_was_found_is_a_note_of_the_section(shape, on_gpu):
    lab, _ = on_gpu
    for _ in range(2):
        lab.model(shape, 256)
    [note] = lab.notes
    assert note.startswith(f"{shape.full_name}: lm_head runs by its formula in PyTorch")
    assert "the text is the same" in note


def test_where_a_cpu_stands_for_a_gpu_nothing_is_looked_for(shape, lab, monkeypatch):
    monkeypatch.setattr(found_forms, "found", lambda *_: pytest.fail("it was checked"))
    lab.model(shape, 256)
    assert not lab.notes
