"""All sections over a tiny model on the CPU, in the three kinds of a run."""

import json
from dataclasses import replace
from functools import partial

import pytest
from rich.console import Console

from engine.bench.gpu import check, run
from engine.bench.gpu.lab import Lab
from engine.bench.gpu.machine import Bandwidth
from engine.bench.gpu.replays import read_tokenizer
from engine.bench.gpu.run import GpuBench, bench_sections, check_sections, profile_sections
from engine.model.gpu.selfcheck.first_load import settle
from engine.progress import NoProgress

FULL = ["bandwidth", *(f"{kind} tiny bf16" for kind in ("steps", "prefill", "replay"))]
NAMES = {
    "full": FULL,
    "profile": ["bandwidth", "steps tiny bf16", "operations tiny bf16"],
    "check": ["kernels tiny bf16"],
}


def shown(*renderables):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(*renderables)
    return captured.get()


@pytest.fixture
def bench(machine, shape, sizes, items, tokenizer_folder):
    """A function that makes a run of a kind."""

    def make(kind="full", replayed=items):
        tokenizer = partial(read_tokenizer, tokenizer_folder, tokenizer_folder)
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
    assert one.failures == {}
    for name in NAMES[kind]:
        assert name in shown(next(one.tables(name)))
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
    assert one.failures == {"bandwidth": "RuntimeError: an illegal memory access"}
    assert "an illegal memory access" in shown(*one.tables("bandwidth"))
    assert "an illegal memory access" in shown(one.failures_table())
    step = one.as_json()["sections"]["steps tiny bf16"][0]
    assert step["step_ms"] > 0
    assert step["floor_ms"] is None, "nothing is known of the bandwidth"


def test_what_a_section_found_before_it_failed_is_kept(bench, machine):
    def two_and_a_failure(lab):
        yield Bandwidth(1.0)
        yield Bandwidth(2.0)
        raise RuntimeError("no memory")

    one = GpuBench(Lab(machine, NoProgress()), {"a": two_and_a_failure})
    assert list(one.run()) == ["a"]
    assert one.as_json()["sections"] == {"a": [{"read_gb_per_s": 1.0}, {"read_gb_per_s": 2.0}]}
    assert one.failures == {"a": "RuntimeError: no memory"}


def test_a_device_without_kernels_is_checked_and_timed(lab, shape):
    lab.machine = replace(lab.machine, has_kernels=False)
    (case,) = check.check_shape(lab, shape)
    assert (case.model, case.verdict.runs, case.verdict.failed) == ("tiny bf16", "pytorch", {})
    assert 0 < case.ms_of_least_rows < case.ms_of_most_rows
    assert case.found.startswith("the text ")
    assert "hidden_size 128" in case.verdict.key["shape"]


def test_what_fails_is_reported_for_weights_as_they_are_held(lab, shape, monkeypatch):
    def settled(*arguments):
        model, verdict = settle(*arguments)
        verdict.failed["early"] = "a race"
        return model, verdict

    monkeypatch.setattr(check, "settle", settled)
    (case,) = check.check_shape(lab, replace(shape, quantization="int4"))
    assert case.model == "tiny int4"
    assert case.verdict.failed["early"] == "a race"
