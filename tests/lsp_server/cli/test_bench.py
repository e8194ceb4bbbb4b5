"""`foregram bench replay`: options reach the benchmark, reports reach stdout. No model runs."""

import json

import pytest

from engine.errors import ModelNotFoundError
from lsp_server.cli import bench
from lsp_server.cli import command_line as cli
from tests.support.replayed import ScriptedEngine, twice_as_fast, write_replay_set


@pytest.fixture
def engine(monkeypatch):
    engine = ScriptedEngine(twice_as_fast)
    monkeypatch.setattr(bench, "load_engine", lambda *_: engine)
    return engine


@pytest.fixture
def replay_path(tmp_path):
    return write_replay_set(tmp_path / "set.jsonl")


def test_replay_prints_one_object_with_figures_for_each_set(engine, replay_path, capsys):
    arguments = ["bench", "replay", str(replay_path), "--count", "5", "--seed", "3", "--json"]
    assert cli.main(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {kind: figures["items"] for kind, figures in answer["sets"].items()} == {
        "completion": 3,
        "edit": 2,
    }
    assert answer["sets"]["edit"]["tokens_per_step"] == 4.0
    assert answer["sets"]["edit"]["on_over_off"] == 2.0
    assert (answer["model"], answer["seed"]) == ("fake-1b", 3)


def test_replay_prints_tables_for_people(engine, replay_path, capsys):
    assert cli.main(["bench", "replay", str(replay_path)]) == 0
    shown = capsys.readouterr().out
    assert "completion, 3 items" in shown
    assert "100.0% of items" in shown


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["missing.jsonl"], "there is no file missing.jsonl"),
        (["{set}", "--lookahead", "1,1,9"], "lookahead 1,1,9"),
    ],
)
def test_bad_input_is_refused_before_a_model_is_loaded(
    options, complaint, replay_path, monkeypatch, capsys
):
    def load(*_):
        raise ModelNotFoundError("nothing should be loaded")

    monkeypatch.setattr(bench, "load_engine", load)
    assert cli.main(["bench", "replay", *(word.format(set=replay_path) for word in options)]) == 2
    assert complaint in capsys.readouterr().err
