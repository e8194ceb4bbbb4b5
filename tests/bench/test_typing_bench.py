"""`python -m tests.bench typing`: the assistants to compare, and the refusals."""

import json
import shutil

import pytest

from engine.errors import ConfigurationError
from lsp_server.settings import Settings
from tests.bench import typing_bench
from tests.bench.__main__ import build_parser
from tests.bench.simulated.screen import Suggestion
from tests.bench.simulated.sides import AssistedTrace, Effort
from tests.bench.simulated.typist import KeyPress, TypedTrace

SHOWN = Suggestion(0.5, 0.4, 0.5, "abcd", 4, 3, 0.1, 0.3)
RUN = AssistedTrace(
    TypedTrace("a", (0.2, 0.2), (KeyPress(0.2, 0.0, "key", "a"),), (SHOWN,), ((0.5, 0.9),)),
    Effort(),
)


@pytest.fixture
def bench(monkeypatch, tmp_path):
    asked = []
    item = {"id": "a", "kind": "completion", "package": "p", "path": "a.py", "suffix": ""}
    file = tmp_path / "set.jsonl"
    file.write_text(json.dumps({**item, "prefix": "\n", "target": "ab", "open_buffers": []}))

    async def take_turns(sides, traces, typist):
        asked.extend(sides)
        assert [trace.id for trace in traces] == ["a"]
        assert typist.seed == 1
        return {side.name: [RUN] for side in sides}

    monkeypatch.setattr(typing_bench, "take_turns", take_turns)

    def run(*options, **settings):
        asked.clear()
        words = ["typing", str(file), *map(str, options)]
        chosen = Settings(cache_folder=tmp_path, runtime_folder=tmp_path / "run", **settings)
        typing_bench.bench(build_parser().parse_args(words), chosen)
        return asked

    return run


def test_foregram_alone_by_default(bench, capsys):
    (side,) = bench("--json")
    assert side.name == "foregram"
    assert json.loads(capsys.readouterr().out)["sides"]["foregram"]["keystrokes_saved"] == 0.5


def test_another_one_types_with_the_same_model(bench, capsys):
    own, other = bench("--against", shutil.which("true"), "--model", "1.5b")
    assert own.environ["FOREGRAM_MODEL"] == other.environ["FOREGRAM_MODEL"] == "1.5b"
    assert own.environ["FOREGRAM_RUNTIME"] != other.environ["FOREGRAM_RUNTIME"]
    assert "against" in capsys.readouterr().out


def test_sides_with_other_models_and_slower_steps_take_its_place(bench, capsys):
    quick, slow = bench("--sides", "offline:1", "1.5b:2.5")
    assert (quick.name, slow.name) == ("offline:1", "1.5b:2.5")
    assert slow.environ["FOREGRAM_MODEL"] == "1.5b"
    assert slow.program[-1] == "2.5"


def test_a_host_elsewhere_is_not_typed_beside(bench):
    with pytest.raises(ConfigurationError, match="host of its own"):
        bench(host_url="http://127.0.0.1:8012")


def test_without_a_llama_server_there_is_no_comparison(bench, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ConfigurationError, match="--llama-server"):
        bench("--compare", "llama-cpp")
