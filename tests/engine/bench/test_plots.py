import sys

import pytest

from engine.bench.measured import Measured
from engine.bench.plots import plot_replay
from engine.bench.replay import ReplayReport
from engine.errors import ConfigurationError
from tests.support.scripted_engine import result

RUN = Measured("i", "p", off=result(), on=result(steps=2, decode_ms=40.0), peers={})
EMPTY = Measured("e", "p", off=result("", tokens=0), on=result("", tokens=0), peers={})
REPORT = ReplayReport({"completion": [RUN, EMPTY], "edit": [RUN]})


def test_draws_a_picture_of_every_kind(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    path = tmp_path / "replay.png"
    plot_replay(REPORT, path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["missing/replay.png", "replay.unknown"])
def test_says_which_file_cannot_be_written(tmp_path, name):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        plot_replay(REPORT, tmp_path / name)


def test_says_what_to_install_for_plots(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigurationError, match=r"foregram\[plots\]"):
        plot_replay(REPORT, tmp_path / "replay.png")
