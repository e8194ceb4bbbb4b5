import json

import pytest
from rich.console import Console

from engine.bench.gpu import run
from engine.bench.gpu.inputs import BenchInputs
from engine.bench.gpu.kernel_check import GpuCheck
from engine.bench.gpu.profile import GpuProfile
from engine.bench.gpu.run import GpuBench
from engine.bench.gpu.tables import failures_table, section_table
from engine.progress import NoProgress

SECTIONS = ["bandwidth", "steps", "prefill", "replay_tiny"]
REPORTS = {
    GpuBench: SECTIONS,
    GpuProfile: ["bandwidth", "gaps", "steps", "operations_tiny"],
    GpuCheck: ["kernels_tiny_bf16"],
}


def shown(renderable):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.mark.timeout(300)  # all sections, and what they compile
@pytest.mark.parametrize("report", REPORTS)
def test_every_section_is_measured_saved_and_shown(report, machine, inputs, sizes, tmp_path):
    bench, path = report(machine, inputs, NoProgress(), sizes), tmp_path / "gpu.json"
    assert list(bench.run()) == REPORTS[report]
    bench.findings.save(path)
    assert failures_table(bench.findings) is None
    for name in REPORTS[report]:
        assert section_table(name, bench.findings) is not None
    saved = json.loads(path.read_text())
    assert list(saved["sections"]) == REPORTS[report]
    assert set(saved) == {"machine", "sections", "failures", "section_seconds"}
    assert {"gpu", "date", "torch", "triton"} <= set(saved["machine"])


def test_a_section_that_fails_is_a_sentence_and_the_others_go_on(
    machine, inputs, sizes, monkeypatch
):
    def broken(*arguments):
        raise RuntimeError("an illegal\nmemory access")

    monkeypatch.setattr(run, "measure_bandwidth", broken)
    without_items = BenchInputs(inputs.shapes, inputs.cache_folder, inputs.tokenizer)
    bench = GpuBench(machine, without_items, NoProgress(), sizes)
    assert list(bench.run()) == SECTIONS[:-1]
    failures = bench.findings.as_json()["failures"]
    assert failures["bandwidth"] == "RuntimeError: an illegal memory access"
    assert failures["steps"] == "ValueError: the bandwidth was not measured"
    assert "prefill" in bench.findings.results
    assert "an illegal memory access" in shown(section_table("bandwidth", bench.findings))
    table = failures_table(bench.findings)
    assert table is not None
    assert "ValueError: the bandwidth was not measured" in shown(table)
