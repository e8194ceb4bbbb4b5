"""`foregram bench`: options reach the benchmark, reports reach stdout. No real model runs."""

import json
from types import SimpleNamespace

import pytest

from engine.errors import ModelNotFoundError
from lsp_server.cli import bench
from lsp_server.cli import command_line as cli
from tests.support.own_qwen2 import own_qwen2
from tests.support.replayed import ScriptedEngine, twice_as_fast, write_replay_set
from tests.support.tiny_models import tiny_model


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


def test_step_prints_a_time_for_each_context_and_number_of_rows(engine, monkeypatch, capsys):
    engine.model = SimpleNamespace(causal_lm=own_qwen2(tiny_model("qwen2"), "float32"))
    monkeypatch.setattr(bench, "CONTEXTS", (8, 64))
    assert cli.main(["bench", "step", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [(one["context"], one["rows"]) for one in steps[7:9]] == [(8, 128), (64, 1)]
    assert min(one["ms"] for one in steps) > 0
    assert cli.main(["bench", "step"]) == 0
    assert "fake-1b" in capsys.readouterr().out


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
