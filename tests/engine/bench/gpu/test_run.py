"""All sections over a tiny model on the CPU, in the two kinds of a run."""

import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from engine.bench.gpu import run
from engine.bench.gpu.run import Bandwidth, GpuBench, Sizes, bench_sections, check_shape, of_each
from engine.model.gpu.selfcheck.first_load import settle
from engine.progress import Progress
from tests.support.tiny_shape import TINY, cpu_machine

pytestmark = pytest.mark.usefixtures("one_thread")

SIZES = Sizes(rows=(1, 8), contexts=(16, 64), prompts=(96,), numbers=100_000)
NAMES = {
    "full": ["bandwidth", "steps tiny bf16", "prefill tiny bf16"],
    "check": ["kernels tiny bf16"],
}


def shown(*renderables):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(*renderables)
    return captured.get()


def gpu_bench(sections):
    return GpuBench(replace(cpu_machine(), gb_per_s=math.nan), sections, Progress())


def make(kind="full"):
    is_full = kind == "full"
    return gpu_bench(
        bench_sections([TINY], SIZES) if is_full else of_each([TINY], "kernels", check_shape)
    )


@pytest.mark.timeout(300)  # all sections, and what they compile
@pytest.mark.parametrize("kind", NAMES)
def test_every_section_is_measured_saved_and_shown(kind, tmp_path):
    one, path = make(kind), tmp_path / "gpu.json"
    assert list(one.run()) == NAMES[kind]
    one.save(path)
    assert one.failures == {}
    for name in NAMES[kind]:
        assert name in shown(next(one.tables(name)))
    saved = json.loads(path.read_text())
    assert list(saved["sections"]) == NAMES[kind]
    assert set(saved) == {"machine", "sections", "failures", "section_seconds"}
    assert {"gpu", "date", "torch", "triton"} <= set(saved["machine"])


def test_what_a_section_found_before_it_failed_is_kept():
    def two_and_a_failure(*_):
        yield Bandwidth(1.0)
        yield Bandwidth(2.0)
        raise RuntimeError("no memory")

    one = gpu_bench({"a": two_and_a_failure})
    assert list(one.run()) == ["a"]
    assert one.as_json()["sections"] == {"a": [{"read_gb_per_s": 1.0}, {"read_gb_per_s": 2.0}]}
    assert one.failures == {"a": "RuntimeError: no memory"}


def test_a_device_without_kernels_is_checked_and_timed():
    machine = replace(cpu_machine(), has_kernels=False)
    (case,) = run.check_shape(machine, Progress(), TINY)
    assert (case.model, case.verdict.runs, case.verdict.failed) == ("tiny bf16", "pytorch", {})
    assert 0 < case.ms_of_least_rows < case.ms_of_most_rows
    assert case.found.startswith("the text ")
    assert "hidden_size 128" in case.verdict.key["shape"]


def test_what_fails_is_reported_for_weights_as_they_are_held(monkeypatch):
    def settled(*arguments):
        model, verdict = settle(*arguments)
        verdict.failed["early"] = "a race"
        return model, verdict

    monkeypatch.setattr(run, "settle", settled)
    (case,) = run.check_shape(cpu_machine(), Progress(), replace(TINY, quantization="int4"))
    assert case.model == "tiny int4"
    assert case.verdict.failed["early"] == "a race"
