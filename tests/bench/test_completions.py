"""Benchmarks of completions: options reach them, reports reach stdout."""

import json
from contextlib import contextmanager, nullcontext

import pytest

from engine.errors import ModelNotFoundError
from engine.request import CompletionRequest
from lsp_server.cli import bench
from tests.bench import crossfile_bench, fim_bench, llama_cpp, replay_bench
from tests.bench.__main__ import main
from tests.bench.replay_bench import run_beside
from tests.support.replayed import (
    ScriptedEngine,
    replay_item,
    result,
    twice_as_fast,
    write_replay_set,
)
from tests.support.tiny_models import save_model, tiny_model


@pytest.fixture
def engine(monkeypatch):
    engine = ScriptedEngine(twice_as_fast)
    monkeypatch.setattr(bench, "load_engine", lambda *_: engine)
    monkeypatch.setattr(replay_bench, "load_engine", lambda *_: engine)
    return engine


@pytest.fixture
def replay_path(tmp_path):
    return write_replay_set(tmp_path / "set.jsonl")


def test_a_peer_stands_beside_the_engine_in_the_replay_of_the_product(
    engine, replay_path, monkeypatch, capsys
):
    asked = []

    def decode(prompt_ids, num_tokens):
        asked.append((prompt_ids, num_tokens))
        return result(tokens=num_tokens - 1, decode_ms=140.0).cost

    peer = llama_cpp.Peer(decode, "build 1")
    monkeypatch.setattr(llama_cpp, "gguf_file", lambda *_: nullcontext("model.gguf"))
    monkeypatch.setattr(llama_cpp, "wheel", lambda *_, **__: peer)
    words = ["replay", str(replay_path), "--compare", "llama-cpp", "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["builds"] == {"llama.cpp": "build 1"}
    peers = answer["peers"]["llama.cpp"]
    assert peers["edit"]["speed"]["ms_per_token_p50"] == 20.0
    assert peers["edit"]["on_over_peer"] == 4.0
    assert asked == [(tuple(b"x%d = " % number), 8) for _ in range(2) for number in range(3)]
    assert main(words[:-1]) == 0
    assert "beside llama.cpp" in capsys.readouterr().out


def test_a_server_of_ones_own_runs_once_for_each_way_to_draft(
    engine, replay_path, monkeypatch, capsys
):
    @contextmanager
    def server(program, model, context, flags):
        yield llama_cpp.Peer(lambda _, tokens: result(tokens=tokens - 1).cost, str(flags))

    monkeypatch.setattr(llama_cpp, "gguf_file", lambda *_: nullcontext("model.gguf"))
    monkeypatch.setattr(llama_cpp, "server", server)
    asked = ["--compare", "llama-cpp", "--llama-server", "x", "--json"]
    assert main(["replay", str(replay_path), *asked]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer["peers"]) == ["llama.cpp", "ngram-mod", "ngram-simple"]
    assert answer["builds"]["llama.cpp"] == "{'--spec-type': 'none'}"
    assert answer["builds"]["ngram-simple"].endswith("'--spec-ngram-simple-size-m': '8'}")


def test_a_peer_is_not_asked_where_nothing_was_written():
    peer = llama_cpp.Peer(lambda *_: pytest.fail("it was asked"), "build 1")
    engine = ScriptedEngine(lambda request: result("", tokens=0, steps=1))
    peers = {"llama.cpp": peer}
    _, compared = run_beside(engine, peers, [replay_item("a = 1")], CompletionRequest("", ""))
    assert compared == {"llama.cpp": {}}


@pytest.fixture
def crossfile_path(tmp_path):
    (tmp_path / "trees" / "p").mkdir(parents=True)
    (tmp_path / "trees" / "p" / "models.py").write_text("class Order:\n    total: int\n")
    row = {
        "id": "1", "stratum": "cross_file", "kind": "member", "package_root": "p",
        "path": "cart.py", "prefix": "from models import Order\nprint(Order.", "target": "total)",
        "suffix": "\n", "open_files": ["models.py"],
        "definition_text": "# models.py\nclass Order:\n    total: int\n",
    }  # fmt: skip
    path = tmp_path / "crossfile.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_crossfile_asks_as_a_host_would_and_prints_all_arms(
    crossfile_path, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    folder = save_model(tiny_model("qwen2", max_position_embeddings=4096), tmp_path / "model")
    options = ["--model", str(folder), "--dtype", "float32", "--max-tokens", "4"]
    assert main(["crossfile", str(crossfile_path), *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    arms = answer["groups"]["cross_file"]
    assert arms["none"]["other_tokens"] == 0
    assert 0 < arms["open_files"]["other_tokens"] < arms["open_files"]["prompt_tokens"]
    shown = {task["arm"]: (task["neighbours"], task["repository"]) for task in answer["tasks"]}
    assert shown["none"] == ([], [])
    assert shown["open_files"] == (["models.py"], [])
    assert shown["together"] == (["models.py"], [])  # all of it, so its definitions only once
    assert shown["repository"] == shown["oracle"] == ([], ["models.py"])
    assert arms["repository"]["recall"] == 1.0
    assert main(["crossfile", str(crossfile_path), *options]) == 0
    assert "cross_file 1" in capsys.readouterr().out
    some = ["--arm", "repository", "--json"]
    assert main(["crossfile", str(crossfile_path), *options, *some]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer["groups"]["cross_file"]) == ["none", "repository"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["fim", "{set}"], "no fill-in-the-middle task"),
        (["crossfile", "{set}"], "no cross-file task"),
        (["replay", "{set}", "--llama-server", "x"], "add --compare llama-cpp"),
    ],
)
def test_bad_input_is_refused_before_a_model_is_loaded(
    arguments, complaint, replay_path, monkeypatch, capsys
):
    def load(*_):
        raise ModelNotFoundError("nothing should be loaded")

    for module in (crossfile_bench, bench, fim_bench, replay_bench):
        monkeypatch.setattr(module, "load_engine", load)
    assert main([*(word.format(set=replay_path) for word in arguments)]) == 2
    assert complaint in capsys.readouterr().err
