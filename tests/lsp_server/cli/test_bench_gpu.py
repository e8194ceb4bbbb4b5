"""`foregram bench gpu`: every section is printed and saved, whatever fails. No GPU runs."""

import json

import pytest

from engine.bench.gpu import run
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.run import Sizes
from engine.bench.gpu.shapes import SHAPES
from lsp_server.cli import bench_gpu
from lsp_server.cli import command_line as cli
from tests.support.tiny_shape import TINY, cpu_machine

SMALL = ("--shapes", "0.5b")


def test_without_a_gpu_bench_gpu_is_refused(capsys):
    assert cli.main(["bench", "gpu"]) == 2
    assert "torch sees no GPU here" in capsys.readouterr().err


def test_without_pytorch_bench_gpu_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr("engine.model.device.has_torch", lambda: False)
    assert cli.main(["bench", "gpu"]) == 2
    assert "'foregram[gpu]'" in capsys.readouterr().err


@pytest.fixture
def no_gpu(monkeypatch, one_thread):
    """Let a CPU and a tiny model stand for the GPU and those of real shapes."""
    sizes = Sizes(rows=(1,), contexts=(8, 16), prompts=(80,), numbers=4000)
    monkeypatch.setattr(Machine, "gpu", cpu_machine)
    monkeypatch.setitem(SHAPES, "0.5b", TINY.config)
    monkeypatch.setattr(bench_gpu, "Sizes", lambda: sizes)


def test_gpu_check_prints_and_saves_a_report_that_names_no_folder(no_gpu, tmp_path, capsys):
    saved = tmp_path / "gpu"
    assert cli.main(["bench", "gpu", "--check", *SMALL, "--save", str(saved)]) == 0
    assert "kernels 0.5b bf16" in capsys.readouterr().out
    report = saved.with_suffix(".json").read_text()
    assert str(tmp_path) not in report
    answer = json.loads(report)
    assert answer["failures"] == {}
    [case] = answer["sections"]["kernels 0.5b bf16"]
    assert case["model"] == "0.5b bf16"
    assert "the text" in case["found"]


def test_gpu_ends_with_the_sections_that_failed(no_gpu, tmp_path, monkeypatch, capsys):
    """Whatever the library said, brackets and all; the figures of the others are a success."""

    def broken(*arguments):
        raise RuntimeError("[/opt/cuda] shape '[1, 64]' is invalid")

    monkeypatch.setattr(run, "measure_bandwidth", broken)
    assert cli.main(["bench", "gpu", *SMALL, "--save", str(tmp_path / "gpu")]) == 0
    _, failed = capsys.readouterr().out.split("SECTIONS THAT FAILED")
    assert "RuntimeError: [/opt/cuda] shape '[1, 64]' is invalid" in failed
    assert "steps" not in failed


def test_gpu_prints_one_object_where_that_is_asked_for(no_gpu, tmp_path, capsys):
    options = [*SMALL, "--dtype", "fp8", "--save", str(tmp_path / "gpu"), "--json"]
    assert cli.main(["bench", "gpu", *options]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert sections.keys() >= {"steps 0.5b fp8", "prefill 0.5b fp8"}
    assert sections["steps 0.5b fp8"][0]["model"] == "0.5b fp8"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--shapes", "8b"], "shape '8b' is none of"),
        ([*SMALL, "--save", "missing/gpu"], "missing/gpu.json cannot be written"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(arguments, complaint, no_gpu, capsys):
    assert cli.main(["bench", "gpu", *arguments]) == 2
    assert complaint in capsys.readouterr().err
