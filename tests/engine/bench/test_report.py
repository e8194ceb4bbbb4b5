import io
import json

import pytest
from rich.console import Console

from engine.bench.measured import Measured
from engine.bench.report import Setting, replay_json, replay_tables
from engine.request import CompletionRequest
from tests.support.held_engine import INFO
from tests.support.replayed import result

SETTING = Setting(INFO, CompletionRequest("", ""))
GOOD = Measured(
    id="good",
    off=result(decode_ms=80.0),
    on=result(steps=2, decode_ms=40.0, sources={"open_buffer": 6}),
)
BAD = Measured("bad", off=result("a"), on=result("b"))
EMPTY = Measured("empty", off=result("", tokens=0), on=result("", tokens=0))


def shown(renderable):
    page = io.StringIO()
    Console(file=page, width=120).print(renderable)
    return page.getvalue()


def test_json_holds_every_figure_of_a_set():
    report = replay_json({"edit": [GOOD]}, SETTING)
    figures = report["sets"]["edit"]
    assert figures["tokens_per_step"] == 4.0
    assert figures["rows_per_step"] == 4.0
    assert figures["on_over_off"] == 2.0
    assert figures["on"]["tokens_per_second"] == 200.0
    assert figures["off"]["ms_per_token_p95"] == 10.0
    assert figures["identical"] == 1.0
    assert figures["accepted_by_source"] == {"open_buffer": 6}
    assert report["items"][0]["speed_up"] == 2.0
    assert report["threads"] >= 1


def test_json_has_null_and_not_nan_where_nothing_was_written():
    report = replay_json({"edit": [EMPTY]}, SETTING)
    json.dumps(report, allow_nan=False)
    assert report["sets"]["edit"]["on"]["tokens_per_second"] is None


def test_tables_show_speeds_and_ratios():
    text = shown(replay_tables({"edit": [GOOD]}, SETTING))
    for piece in ("edit, 1 items", "200.0", "2.00", "open_buffer 6", "fake-1b"):
        assert piece in text


def test_tables_name_items_that_are_not_identical():
    text = shown(replay_tables({"edit": [GOOD, BAD]}, SETTING))
    assert "not identical with lookahead: bad" in text
    assert "not identical with lookahead: good" not in text


@pytest.mark.parametrize(("load", "is_said"), [(2.1, False), (2.6, True)])
def test_says_that_times_are_unsteady_on_a_busy_machine(monkeypatch, load, is_said):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, load, 0.0))
    text = shown(replay_tables({"edit": [GOOD]}, SETTING))
    assert ("BUSY" in text) == is_said
    assert replay_json({"edit": [GOOD]}, SETTING)["load"] == load
