import sys

import pytest

from engine.bench.measured import Measured
from engine.bench.plots import ReplayPicture
from engine.bench.replay import ReplayReport
from engine.errors import ConfigurationError
from tests.support.scripted_engine import result

RUN = Measured("i", "p", off=result(), on=result(steps=2, decode_ms=40.0), off_first=True, peers={})
EMPTY = Measured(
    "e", "p", off=result("", tokens=0), on=result("", tokens=0), off_first=True, peers={}
)
REPORT = ReplayReport({"completion": [RUN, EMPTY], "edit": [RUN]})


def test_draws_a_picture_of_every_kind(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    path = tmp_path / "replay.png"
    ReplayPicture(path).draw(REPORT)
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
        ReplayPicture(tmp_path / name)


def test_says_that_a_file_cannot_be_written(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    path = tmp_path / "replay.png"
    path.mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        ReplayPicture(path).draw(REPORT)


def test_says_what_to_install_for_plots(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigurationError, match=r"foregram\[plots\]"):
        ReplayPicture(tmp_path / "replay.png")
