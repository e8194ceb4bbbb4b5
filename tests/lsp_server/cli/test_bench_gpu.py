"""`foregram bench gpu`: every section is printed and saved, whatever fails. No GPU runs."""

import json
import sys
from dataclasses import replace

import pytest
import torch

from engine.bench.gpu import run
from engine.bench.gpu.machine import Machine, host_ms
from engine.bench.gpu.run import Sizes
from engine.bench.gpu.shapes import SHAPES
from lsp_server.cli import bench
from lsp_server.cli import command_line as cli
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.replayed import write_replay_set


def test_without_a_gpu_bench_gpu_is_refused(capsys):
    assert cli.main(["bench", "gpu"]) == 2
    assert "torch sees no GPU here" in capsys.readouterr().err


@pytest.fixture
def no_gpu(monkeypatch, one_thread):
    """Let a CPU and a tiny model stand for the GPU and those of real shapes."""
    sizes = Sizes(rows=(1,), contexts=(8, 16), prompts=(80,), numbers=4000)
    machine = Machine(torch.device("cpu"), torch.float32, host_ms)
    config = replace(
        SHAPES["7b"], num_layers=1, hidden_size=64, num_heads=2, num_kv_heads=1, head_dim=32,
        intermediate_size=64, vocab_size=300, max_position=2048,
    )  # fmt: skip
    monkeypatch.setattr(Machine, "gpu", lambda: machine)
    monkeypatch.setitem(SHAPES, "0.5b", config)
    monkeypatch.setattr(bench, "QUICK", sizes)


def test_gpu_prints_every_section_and_saves_them(no_gpu, tmp_path, capsys):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    saved, plot = tmp_path / "gpu", tmp_path / "steps.png"
    options = ["--quick", "--count", "1", "--tokenizer", str(tmp_path), "--save", str(saved)]
    options += ["--plot", str(plot)]
    replay_set = write_replay_set(tmp_path / "set.jsonl")
    assert cli.main(["bench", "gpu", str(replay_set), *options]) == 0
    shown = capsys.readouterr().out
    assert "replay 0.5b" in shown
    assert "SECTIONS THAT FAILED" not in shown
    answer = json.loads(saved.with_suffix(".json").read_text())
    assert answer["failures"] == {}
    assert answer["sections"]["replay 0.5b bf16"][0]["items"] == 1
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_gpu_check_prints_and_saves_a_report_that_names_no_folder(no_gpu, tmp_path, capsys):
    saved = tmp_path / "gpu"
    assert cli.main(["bench", "gpu", "--check", "--quick", "--save", str(saved)]) == 0
    shown = capsys.readouterr().out
    assert "kernels 0.5b bf16" in shown
    assert "the text" in shown
    report = saved.with_suffix(".json").read_text()
    assert str(tmp_path) not in report
    answer = json.loads(report)
    assert answer["failures"] == {}
    [case] = answer["sections"]["kernels 0.5b bf16"]
    assert case["model"] == "0.5b bf16"


def test_gpu_ends_with_the_sections_that_failed(no_gpu, tmp_path, monkeypatch, capsys):
    """Whatever the library said, brackets and all; the figures of the others are a success."""

    def broken(*arguments):
        raise RuntimeError("[/opt/cuda] shape '[1, 64]' is invalid")

    monkeypatch.setattr(run, "measure_bandwidth", broken)
    assert cli.main(["bench", "gpu", "--quick", "--save", str(tmp_path / "gpu")]) == 0
    _, failed = capsys.readouterr().out.split("SECTIONS THAT FAILED")
    assert "RuntimeError: [/opt/cuda] shape '[1, 64]' is invalid" in failed
    assert "steps" not in failed


def test_gpu_prints_one_object_where_that_is_asked_for(no_gpu, tmp_path, capsys):
    options = ["--quick", "--dtype", "fp8", "--save", str(tmp_path / "gpu"), "--json"]
    assert cli.main(["bench", "gpu", *options]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert sections.keys() >= {"steps 0.5b fp8", "prefill 0.5b fp8"}
    assert sections["steps 0.5b fp8"][0]["model"] == "0.5b fp8"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--quick", "missing.jsonl"], "there is no file missing.jsonl"),
        (["--shapes", "8b"], "shape '8b' is none of"),
        (["--profile", "set.jsonl"], "--profile and --check replay nothing"),
        (["--check", "set.jsonl"], "--profile and --check replay nothing"),
        (["--check", "--plot", "steps.png"], "--check times no steps"),
        (["--quick", "--plot", "missing/steps.png"], "there is no folder"),
        (["--quick", "--plot", "steps.unknown"], "steps.unknown ends in none of"),
        (["--quick", "--save", "missing/gpu"], "missing/gpu.json cannot be written"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(arguments, complaint, no_gpu, capsys):
    assert cli.main(["bench", "gpu", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_what_to_install_for_a_plot_is_said(no_gpu, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["bench", "gpu", "--quick", "--plot", "steps.png"]) == 2
    assert "pip install 'foregram[plots]'" in capsys.readouterr().err
