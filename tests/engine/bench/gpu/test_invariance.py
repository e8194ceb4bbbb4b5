from dataclasses import replace

from engine.bench.gpu import invariance
from engine.bench.gpu.invariance import measure_invariance
from engine.bench.gpu.shapes import Shape


def test_rows_in_company_say_what_they_say_alone(shape, lab):
    """In float32 on a CPU the bits follow the number of rows, but nothing more does."""
    (found,) = measure_invariance(lab, [shape], 2, (1, 16)).cases
    assert (found.shape, found.quantization, found.trees) == ("tiny", "bf16", 4)
    assert found.rows_checked >= 10
    assert found.tokens_different == 0
    assert found.most_logit_difference < 1e-4


def test_a_row_that_reads_another_text_is_found(shape, lab, monkeypatch):
    wrong = invariance._path
    monkeypatch.setattr(invariance, "_path", lambda tree, leaf: [0, *wrong(tree, leaf)])
    (found,) = measure_invariance(lab, [shape], 1, (16,)).cases
    assert found.most_logit_difference > 1e-3
    assert found.rows_different > 0


def test_a_single_row_is_bit_equal(shape, lab):
    (found,) = measure_invariance(lab, [shape], 2, (1,)).cases
    assert found.rows_different == 0


def test_a_model_that_cannot_run_is_a_note(shape, lab):
    broken = Shape("broken", replace(shape.config, hidden_size=96), "int4")
    found = measure_invariance(lab, [broken, replace(shape, quantization="fp8")], 1, (1,))
    assert [case.quantization for case in found.cases] == ["fp8"]
    assert found.cases[0].rows_different == 0
    assert found.notes[0].startswith("broken int4: ")
