"""The benchmarks `calibration` and `pool`: figures of the model and of a part."""

import json

import pytest

from engine.errors import ModelNotFoundError
from tests.bench import calibration_bench
from tests.bench.__main__ import main
from tests.bench.calibration_bench import TEMPERATURES
from tests.support.replay_sets import write_replay_set
from tests.support.tiny_models import save_model, tiny_model


@pytest.fixture
def replay_path(tmp_path):
    return write_replay_set(tmp_path / "set.jsonl")


def test_the_pool_is_measured_at_the_asked_size(capsys):
    assert main(["pool", "--tokens", "20000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] >= 20_000


@pytest.fixture
def calibration(replay_path, tmp_path, monkeypatch):
    """The command's words for a tiny model and a small set."""
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    folder = save_model(tiny_model("qwen2", max_position_embeddings=2048), tmp_path / "model")
    return ["calibration", str(replay_path), "--model", str(folder), "--dtype", "float32"]


def test_calibration_prints_one_object_and_draws_the_diagram(calibration, tmp_path, capsys):
    """The bins hold all tokens, and the error is what follows from them."""
    picture = tmp_path / "reliability.png"
    assert main([*calibration, "--count", "5", "--json", "--plot", str(picture)]) == 0
    figures = json.loads(capsys.readouterr().out)
    bins = figures["bins"]
    assert figures["tokens"] == sum(one["tokens"] for one in bins) == 10  # a blank, and a digit
    assert figures["tokens"] == sum(one["tokens"] for one in figures["fitted_bins"])
    gaps = sum(one["tokens"] * abs(one["confidence"] - one["right"]) for one in bins)
    assert figures["error"] == pytest.approx(gaps / 10)
    assert figures["temperature"] in TEMPERATURES
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_calibration_prints_a_table_for_people(calibration, capsys):
    assert main(calibration) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(word in shown for word in ("tokens", "said", "right", "as the model says"))
    assert "12 tokens" in shown
    assert "expected calibration error 0." in shown


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["missing.jsonl"], "there is no file missing.jsonl"),
        (["{set}", "--plot", "picture.exe"], "picture.exe"),
    ],
)
def test_calibration_refuses_bad_input_before_a_model_is_loaded(
    options, complaint, replay_path, monkeypatch, capsys
):
    def load(*_):
        raise ModelNotFoundError("nothing should be loaded")

    monkeypatch.setattr(calibration_bench, "load_engine", load)
    words = [word.format(set=replay_path) for word in options]
    assert main(["calibration", *words]) == 2
    assert complaint in capsys.readouterr().err
