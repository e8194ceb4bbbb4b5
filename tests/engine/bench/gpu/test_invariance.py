from dataclasses import replace

from engine.bench.gpu import invariance
from engine.bench.gpu.invariance import measure_invariance, rows_different
from engine.bench.gpu.shapes import Shape
from engine.progress import NoProgress
from kernels.weight import Quantization


def test_rows_in_company_say_what_they_say_alone(shape, machine):
    """In float32 on a CPU the bits follow the number of rows, but nothing more does."""
    (found,) = measure_invariance(machine, [(shape, "float")], 2, NoProgress(), (1, 16)).cases
    assert (found.shape, found.quantization, found.trees) == ("tiny", "bf16", 4)
    assert found.rows_checked >= 10
    assert found.tokens_different == 0
    assert found.most_logit_difference < 1e-4


def test_a_row_that_reads_another_text_is_found(shape, machine, monkeypatch):
    wrong = invariance._path
    monkeypatch.setattr(invariance, "_path", lambda tree, leaf: [0, *wrong(tree, leaf)])
    (found,) = measure_invariance(machine, [(shape, "float")], 1, NoProgress(), (16,)).cases
    assert found.most_logit_difference > 1e-3
    assert found.rows_different > 0


def test_a_single_row_is_bit_equal(shape, machine):
    result = measure_invariance(machine, [(shape, "float")], 2, NoProgress(), (1,))
    assert rows_different(result) == 0


def test_a_model_that_cannot_run_is_a_note_and_nothing_is_said_of_all(shape, machine):
    broken = Shape("broken", replace(shape.config, hidden_size=96))
    cases: list[tuple[Shape, Quantization]] = [(broken, "int4"), (shape, "fp8")]
    found = measure_invariance(machine, cases, 1, NoProgress(), (1,))
    assert [case.quantization for case in found.cases] == ["fp8"]
    assert found.cases[0].rows_different == 0
    assert found.notes[0].startswith("broken int4: ")
    assert rows_different(found) is None
