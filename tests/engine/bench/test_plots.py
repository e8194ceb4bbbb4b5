import sys
from functools import partial

import pytest

from engine.bench.measured import Measured
from engine.bench.plots import Picture, draw_replay, draw_steps
from engine.bench.replay import ReplayReport
from engine.bench.step import MachineLimits, StepParts
from engine.errors import ConfigurationError
from tests.support.replayed import result

RUN = Measured("i", "p", off=result(), on=result(steps=2, decode_ms=40.0), off_first=True, peers={})
EMPTY = Measured(
    "e", "p", off=result("", tokens=0), on=result("", tokens=0), off_first=True, peers={}
)
REPORT = ReplayReport({"completion": [RUN, EMPTY], "edit": [RUN]})


def test_draws_a_picture_of_every_kind(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    path = tmp_path / "replay.png"
    Picture(path).save(partial(draw_replay, REPORT))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_draws_a_line_for_each_context(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    limits = MachineLimits("AVX2", 2, 20.0, 300.0, 0.5)
    times = [StepParts(rows, 64, 30.0, 20.0, 5.0, 5.0, 1.0) for rows in (1, 8)]
    path = tmp_path / "step.png"
    Picture(path).save(partial(draw_steps, times, limits))
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/replay.png", "there is no folder"),
        ("replay.unknown", "ends in none of .*png"),
        ("replay", "ends in none of"),
    ],
)
def test_says_before_measuring_that_a_picture_cannot_be_drawn(tmp_path, name, message):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    with pytest.raises(ConfigurationError, match=message):
        Picture(tmp_path / name)


def test_says_that_a_file_cannot_be_written(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    path = tmp_path / "replay.png"
    path.mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        Picture(path).save(partial(draw_replay, REPORT))


def test_says_what_to_install_for_plots(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigurationError, match=r"foregram\[plots\]"):
        Picture(tmp_path / "replay.png")
