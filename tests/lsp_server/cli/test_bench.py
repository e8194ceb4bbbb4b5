"""`foregram bench`: options reach the benchmarks, reports reach stdout. No model runs."""

import json
import sys
from dataclasses import dataclass, replace

import pytest
import torch

from engine.bench.gpu import run
from engine.bench.gpu.inputs import QUICK, Sizes
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import SHAPES
from engine.bench.measured import OFF
from engine.errors import ModelNotFoundError
from engine.model.tokenizer import Tokenizer
from lsp_server.cli import bench
from lsp_server.cli import command_line as cli
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.fake_engine import INFO
from tests.support.host_timer import HostTimer
from tests.support.scripted_engine import ScriptedEngine, result
from tests.support.tiny_models import save_model, tiny_model

FAST = result(tokens=8, steps=2, decode_ms=40.0, sources={"open_buffer": 6})
SLOW = result(tokens=8, steps=8, decode_ms=80.0)


@dataclass
class Loaded(ScriptedEngine):
    """A scripted engine that also says what it is."""

    info = INFO

    def close(self) -> None:
        """Nothing was learned."""


@pytest.fixture
def engine(monkeypatch):
    engine = Loaded(lambda request: SLOW if request.lookahead == OFF else FAST)
    monkeypatch.setattr(bench, "load_engine", lambda *_: engine)
    return engine


@pytest.fixture
def replay_path(tmp_path):
    rows = [
        {
            "id": f"{kind}/p/1/a.py:{number}",
            "kind": kind,
            "package": "p",
            "path": "a.py",
            "prefix": f"x{number} = ",
            "target": "1",
            "suffix": "\n",
            "open_buffers": [{"path": "b.py", "text": "x = 1\n"}],
        }
        for kind in ("completion", "edit")
        for number in range(3)
    ]
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def tasks_path(tmp_path):
    row = {
        "task_id": "RandomSpanInfilling/1",
        "entry_point": "one",
        "prompt": "def one():\n    return ",
        "canonical_solution": "1",
        "suffix": "\n",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
    }
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_replay_prints_one_object_with_figures_for_each_set(engine, replay_path, capsys):
    arguments = ["bench", "replay", str(replay_path), "--count", "5", "--seed", "3", "--json"]
    assert cli.main(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {kind: figures["items"] for kind, figures in answer["sets"].items()} == {
        "completion": 3,
        "edit": 2,
    }
    assert answer["sets"]["edit"]["tokens_per_step"] == 4.0
    assert answer["sets"]["edit"]["on_over_off"]["of_totals"] == 2.0
    assert (answer["model"], answer["seed"]) == ("fake-1b", 3)


def test_replay_prints_tables_for_people(engine, replay_path, capsys):
    assert cli.main(["bench", "replay", str(replay_path)]) == 0
    shown = capsys.readouterr().out
    assert "completion, 3 items" in shown
    assert "100.0% of items" in shown


def test_replay_draws_a_picture(engine, replay_path, tmp_path):
    picture = tmp_path / "replay.png"
    assert cli.main(["bench", "replay", str(replay_path), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_rules_can_be_left_out(engine, replay_path):
    assert cli.main(["bench", "replay", str(replay_path), "--no-stop-rules"]) == 0
    assert not engine.requests[-1].stop.suffix


def test_the_oracle_needs_no_engine(replay_path, monkeypatch, capsys):
    tokenizer = Tokenizer.from_json(byte_tokenizer().to_str())
    monkeypatch.setattr(bench, "load_tokenizer", lambda *_: tokenizer)
    assert cli.main(["bench", "replay", str(replay_path), "--oracle", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {case["kind"] for case in answer["cases"]} == {"completion", "edit"}
    assert all(case["tokens_per_step"] >= 1 for case in answer["cases"])


def test_the_pool_is_measured_at_the_asked_size(capsys):
    assert cli.main(["bench", "pool", "--tokens", "20000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] >= 20_000


def test_fim_prints_one_object_with_scores(engine, tasks_path, capsys):
    assert cli.main(["bench", "fim", str(tasks_path), "--layout", "psm", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["layout"] == "psm"
    assert answer["languages"]["py"]["pass_at_1"] == 0.0  # the script says "ab", not "1"


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
    assert cli.main(["bench", "crossfile", str(crossfile_path), *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    arms = answer["groups"]["cross_file"]
    assert arms["none"]["other_tokens"] == 0
    assert 0 < arms["open_files"]["other_tokens"] < arms["open_files"]["prompt_tokens"]
    shown = {task["arm"]: (task["neighbours"], task["repository"]) for task in answer["tasks"]}
    assert shown["none"] == ([], [])
    assert shown["open_files"] == (["models.py"], [])
    assert shown["together"] == (["models.py"], ["models.py"])  # its definitions, too
    assert shown["repository"] == shown["oracle"] == ([], ["models.py"])
    assert arms["repository"]["recall"] == 1.0
    assert cli.main(["bench", "crossfile", str(crossfile_path), *options]) == 0
    assert "cross_file 1" in capsys.readouterr().out
    some = ["--arm", "repository", "--json"]
    assert cli.main(["bench", "crossfile", str(crossfile_path), *options, *some]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer["groups"]["cross_file"]) == ["none", "repository"]


def test_a_model_is_made_to_say_the_targets(replay_path, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    folder = save_model(tiny_model("qwen2", max_position_embeddings=2048), tmp_path / "model")
    picture = tmp_path / "replay.png"
    options = ["--oracle-forced", "--model", str(folder), "--dtype", "float32", "--json"]
    options += ["--plot", str(picture)]
    assert cli.main(["bench", "replay", str(replay_path), *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["inexact"] == answer["different"] == []
    assert [item["text"] for item in answer["items"]] == ["1"] * 6
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_unknown_peer_is_refused_with_the_known_ones(replay_path, capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "replay", str(replay_path), "--compare", "vllm"])
    said = capsys.readouterr().err
    assert all(word in said for word in ("vllm", "llama-cpp", "transformers"))


def test_without_a_gpu_bench_gpu_is_refused(capsys):
    assert cli.main(["bench", "gpu"]) == 2
    assert "torch sees no GPU here" in capsys.readouterr().err


@pytest.fixture
def no_gpu(monkeypatch, one_thread):
    """Let a CPU and a tiny model stand for the GPU and those of real shapes."""
    sizes = Sizes(rows=(1,), contexts=(8, 16), prompts=(80,), numbers=4000, launches=1, rounds=1)
    machine = Machine(torch.device("cpu"), torch.float32, HostTimer(1).ms)
    config = replace(
        SHAPES["7b"], num_layers=1, hidden_size=64, num_heads=2, num_kv_heads=1, head_dim=32,
        intermediate_size=64, vocab_size=300, max_position=2048,
    )  # fmt: skip
    monkeypatch.setattr(Machine, "gpu", lambda: machine)
    monkeypatch.setitem(SHAPES, "0.5b", config)
    monkeypatch.setattr(bench, "QUICK", sizes)


def test_gpu_prints_every_section_and_saves_them(no_gpu, replay_path, tmp_path, capsys):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    saved = tmp_path / "gpu"
    options = ["--quick", "--count", "1", "--tokenizer", str(tmp_path), "--save", str(saved)]
    assert cli.main(["bench", "gpu", str(replay_path), *options]) == 0
    shown = capsys.readouterr().out
    assert "replay 0.5b bf16" in shown
    assert "not measured" in shown
    answer = json.loads(saved.with_suffix(".json").read_text())
    assert answer["failures"] == {}
    assert answer["sections"]["replay_0.5b_bf16"][0]["items"] == 1
    assert saved.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_gpu_profile_prints_and_saves_its_sections_alone(no_gpu, tmp_path, capsys):
    saved = tmp_path / "gpu"
    assert cli.main(["bench", "gpu", "--profile", "--quick", "--save", str(saved)]) == 0
    shown = capsys.readouterr().out
    assert "gaps" in shown
    assert "not measured" not in shown
    answer = json.loads(saved.with_suffix(".json").read_text())
    assert answer["failures"] == {}
    assert answer["sections"]["cuts_0.5b_bf16"]["cases"][0]["is_ours"]
    assert not saved.with_suffix(".png").exists()


def test_gpu_ends_with_the_sections_that_failed(no_gpu, tmp_path, monkeypatch, capsys):
    """Whatever the library said, brackets and all; the figures of the others are a success."""

    def broken(*arguments):
        raise RuntimeError("[/opt/cuda] shape '[1, 64]' is invalid")

    monkeypatch.setattr(run, "measure_bandwidth", broken)
    assert cli.main(["bench", "gpu", "--quick", "--save", str(tmp_path / "gpu")]) == 0
    _, failed = capsys.readouterr().out.split("SECTIONS WITHOUT FIGURES")
    assert "RuntimeError: [/opt/cuda] shape '[1, 64]' is invalid" in failed
    assert "ValueError: the bandwidth was not measured" in failed
    assert "first_token" not in failed


def test_the_help_of_gpu_tells_the_defaults(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "gpu", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{Sizes().items} by default, {QUICK.items} with --quick" in shown
    assert "gpu-bench by default" in shown


def test_gpu_goes_on_without_matplotlib(no_gpu, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    saved = tmp_path / "gpu"
    assert cli.main(["bench", "gpu", "--quick", "--save", str(saved), "--json"]) == 0
    printed = capsys.readouterr()
    assert "no picture without matplotlib" in printed.err
    assert json.loads(printed.out)["sections"].keys() >= {"steps", "products", "invariance"}
    assert not saved.with_suffix(".png").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay", "missing.jsonl"], "there is no file missing.jsonl"),
        (["replay", "{set}", "--plot", "picture.exe"], "picture.exe"),
        (["replay", "{set}", "--lookahead", "1,1,9"], "lookahead 1,1,9"),
        (["fim", "{set}"], "no fill-in-the-middle task"),
        (["crossfile", "{set}"], "no cross-file task"),
        (["replay", "{set}", "--oracle-forced", "--compare", "transformers"], "has no peers"),
        (["gpu", "--quick", "--chat", "tasks.jsonl"], "--chat asks a real model"),
        (["gpu", "--quick", "missing.jsonl"], "there is no file missing.jsonl"),
        (["gpu", "--shapes", "8b"], "shape '8b' is none of"),
        (["gpu", "--profile", "--model", "0.5b"], "--profile measures kernels alone"),
        (["gpu", "--quick", "--save", "missing/gpu"], "missing/gpu.json cannot be written"),
    ],
)
def test_bad_input_is_refused_before_a_model_is_loaded(
    arguments, complaint, no_gpu, replay_path, monkeypatch, capsys
):
    def load(*_):
        raise ModelNotFoundError("nothing should be loaded")

    monkeypatch.setattr(bench, "load_engine", load)
    assert cli.main(["bench", *(word.format(set=replay_path) for word in arguments)]) == 2
    assert complaint in capsys.readouterr().err
