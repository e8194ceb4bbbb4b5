"""All sections over a tiny model on the CPU, in the three kinds of a run."""

import json
from dataclasses import replace
from functools import partial

import pytest
from rich.console import Console

from engine.bench.gpu import check, run
from engine.bench.gpu.lab import Lab
from engine.bench.gpu.replays import read_tokenizer
from engine.bench.gpu.run import GpuBench, bench_sections, check_sections, profile_sections
from engine.bench.gpu.tables import failures_table, section_table
from engine.model.gpu.selfcheck.first_load import settle
from engine.progress import NoProgress

FULL = ["bandwidth", "steps", "prefill", "replay_tiny"]
NAMES = {
    "full": FULL,
    "profile": ["bandwidth", "steps", "operations_tiny"],
    "check": ["kernels_tiny_bf16"],
}


def shown(renderable):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.fixture
def bench(machine, shape, sizes, items, tokenizer_folder):
    """A function that makes a run of a kind."""

    def make(kind="full", replayed=items):
        def tokenizer(lab):
            return read_tokenizer(tokenizer_folder, tokenizer_folder, lab.progress)

        sections = {
            "full": partial(bench_sections, [shape], sizes, replayed, tokenizer),
            "profile": partial(profile_sections, [shape], sizes),
            "check": partial(check_sections, [shape]),
        }[kind]()
        return GpuBench(Lab(machine, NoProgress()), sections)

    return make


@pytest.mark.timeout(300)  # all sections, and what they compile
@pytest.mark.parametrize("kind", NAMES)
def test_every_section_is_measured_saved_and_shown(bench, kind, tmp_path):
    one, path = bench(kind), tmp_path / "gpu.json"
    assert list(one.run()) == NAMES[kind]
    one.save(path)
    assert failures_table(one) is None
    for name in NAMES[kind]:
        assert section_table(name, one) is not None
    saved = json.loads(path.read_text())
    assert list(saved["sections"]) == NAMES[kind]
    assert set(saved) == {"machine", "sections", "failures", "section_seconds"}
    assert {"gpu", "date", "torch", "triton"} <= set(saved["machine"])


def test_a_section_that_fails_is_a_sentence_and_the_others_go_on(bench, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("an illegal\nmemory access")

    monkeypatch.setattr(run, "measure_bandwidth", broken)
    one = bench(replayed=())
    assert list(one.run()) == FULL[:-1]
    failures = one.as_json()["failures"]
    assert failures["bandwidth"] == "RuntimeError: an illegal memory access"
    assert failures["steps"] == "ValueError: the bandwidth was not measured"
    assert "prefill" in one.results
    assert "an illegal memory access" in shown(section_table("bandwidth", one))
    assert "ValueError: the bandwidth was not measured" in shown(failures_table(one))


def test_a_device_without_kernels_is_checked_and_timed(lab, shape):
    lab.machine = replace(lab.machine, has_kernels=False)
    found = check.check_shape(lab, shape)
    (case,) = found.cases
    assert (case.model, case.verdict.runs, case.verdict.failed) == ("tiny bf16", "pytorch", {})
    assert 0 < case.ms_of_least_rows < case.ms_of_most_rows
    assert found.notes[0].startswith("PyTorch runs all of it; the text ")
    assert "hidden_size 128" in case.verdict.key["shape"]


def test_what_fails_is_reported_for_weights_as_they_are_held(lab, shape, monkeypatch):
    def settled(*arguments):
        model, verdict = settle(*arguments)
        verdict.failed["early"] = "a race"
        return model, verdict

    monkeypatch.setattr(check, "settle", settled)
    (case,) = check.check_shape(lab, replace(shape, quantization="int4")).cases
    assert case.model == "tiny int4"
    assert case.verdict.failed["early"] == "a race"
