"""Operations and forced replays on models whose own words are noise. A CPU stands for the GPU."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.run import Sizes
from engine.bench.gpu.shapes import SHAPES
from engine.config import Lookahead
from engine.model.causal_lm import StepInput, run_step
from engine.model.gpu.step_graphs import ROW_BUCKETS, StepGraphs, warm_up
from engine.model.token_tree import TokenTree
from engine.progress import Progress
from engine.request import CompletionRequest
from tests.bench import gpu_bench
from tests.bench.__main__ import main
from tests.bench.forced_replay import (
    ForcedModel,
    measure_replays,
    replay_forced,
)
from tests.bench.gpu_bench import measure_operations
from tests.support.byte_tokenizer import byte_tokenizer, own_tokenizer
from tests.support.own_qwen2 import own_qwen2
from tests.support.prepared import engine_of
from tests.support.replayed import replay_item, write_replay_set
from tests.support.tiny_models import tiny_model
from tests.support.tiny_shape import TINY, cpu_machine

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.timeout(300),  # compiles first
]

ITEM = replay_item("    total = first + second\n\n\n\n\n    return total * 2\n")
INSIDE_A_WORD = replace(
    ITEM, id="edit", kind="edit", prefix=ITEM.prefix + "to", target=ITEM.target[2:]
)
ITEMS = [ITEM, INSIDE_A_WORD]


@pytest.fixture(scope="module")
def causal_lm():
    return own_qwen2(tiny_model("qwen2", max_position_embeddings=2048), "int8")


@pytest.fixture
def tokenizer():
    return own_tokenizer()


@pytest.fixture
def replayed(tokenizer, monkeypatch):
    """Return a function that replays on the tiny model.

    The costs of rows are given: on a busy machine `auto` would draft nothing.
    """
    costs = {rows: 1.0 + rows / 1000 for rows in ROW_BUCKETS}
    monkeypatch.setattr("engine.learning._sweep", lambda *_: costs)

    def replay():
        return list(
            measure_replays(cpu_machine(), Progress(), TINY, ITEMS, lambda _progress: tokenizer)
        )

    return replay


def test_a_replay_writes_its_target_with_lookahead_and_without(replayed):
    found = replayed()
    assert [(one.kind, one.figures.items, one.different) for one in found] == [
        ("completion", 1, 0),
        ("edit", 1, 0),
    ]
    assert all(one.tokens_per_step > 2 and one.on_tokens_per_s > 0 for one in found)


def test_a_text_that_is_not_the_target_is_counted(replayed, monkeypatch):
    monkeypatch.setattr(ForcedModel, "spoken", lambda self, step, output: output)
    assert [one.different for one in replayed()] == [1, 1]


def test_no_completion_makes_a_launch(replayed, monkeypatch):
    """On a GPU each would capture a graph, which takes longer than a step of any model."""
    made, make = [], StepGraphs._make

    def watched(graphs, memory):
        made.append(memory.shape)
        return make(graphs, memory)

    def warmed(graphs, progress):
        warm_up(graphs, progress)
        assert any(step.has_logits and step.rows == 128 for step in made)
        made.clear()

    monkeypatch.setattr(StepGraphs, "_make", watched)
    monkeypatch.setattr("tests.bench.forced_replay.warm_up", warmed)
    assert replayed()
    assert made == []


@pytest.mark.parametrize("lookahead", ["auto", "8,8,8"])
def test_the_target_is_written_token_for_token_on_and_off(
    lookahead, causal_lm, tokenizer, tmp_path
):
    engine = engine_of("forced", ForcedModel(causal_lm), tokenizer, tmp_path, Progress())
    decoding = CompletionRequest("", "", lookahead=Lookahead.parse(lookahead))
    runs = replay_forced(engine, ITEMS, decoding)
    for item in ITEMS:
        [(run, is_exact)] = runs[item.kind]
        assert is_exact
        owed = "    " if item is ITEM else " to"
        assert run.on.text == item.target
        assert run.on.token_ids == tuple(tokenizer.encode(owed + item.target))
        assert run.off.cost.steps == run.off.cost.tokens
        assert run.on.cost.steps < run.off.cost.steps / 2


def test_rows_off_the_path_and_behind_its_end_say_what_the_model_says(causal_lm):
    tree = TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 1, 0], np.int32))
    own = run_step(causal_lm, StepInput(causal_lm.new_slot(300), tree)).chosen
    for target, path, chosen in (
        ([6, 7], [0, 1, 2], [6, 7, own[2], own[3]]),
        ([], None, own.tolist()),
    ):
        forced = ForcedModel(causal_lm, target)
        output = run_step(forced, StepInput(forced.new_slot(300), tree))
        assert output.chosen.tolist() == chosen
        assert path is None or output.path.tolist() == path


def test_every_operation_of_a_step_is_timed_as_often_as_it_is_launched():
    measure = partial(measure_operations, cpu_machine(), Progress())
    found = list(measure(replace(TINY, quantization="fp8"), [(1, 64), (8, 64)]))
    launches = {(one.operation, one.weight): one.launches for one in found}
    assert launches == {
        ("kv_commit", ""): 1,
        ("embed_rows", ""): 1,
        ("project_qkv", "256 x 128"): 2,
        ("batch_attention", ""): 2,
        ("skinny_matmul", "128 x 128"): 2,
        ("gate_up", "512 x 128"): 2,
        ("skinny_matmul", "128 x 256"): 2,
        ("lm_head", f"{TINY.config.vocab_size} x 128"): 1,
        ("acceptance_walk", ""): 1,
    }
    assert len(found) == 2 * len(launches)
    bytes_of = {(one.operation, one.weight): one.bytes for one in found}
    assert bytes_of["gate_up", "512 x 128"] == 512 * 128 + 4 * 512
    assert bytes_of["batch_attention", ""] == 2 * 64 * 64 * 4
    assert min(one.us for one in found) > 0


@pytest.mark.parametrize("sets", [0, 1], ids=["operations", "replay"])
def test_sections_are_printed_and_saved(sets, tmp_path, monkeypatch, capsys):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    monkeypatch.setattr(Machine, "gpu", cpu_machine)
    monkeypatch.setitem(SHAPES, "0.5b", TINY.config)
    monkeypatch.setattr(gpu_bench, "Sizes", lambda: Sizes(numbers=4000))
    monkeypatch.setattr(gpu_bench, "_ROWS", (1,))
    files = [str(write_replay_set(tmp_path / "set.jsonl"))] * sets
    options = ["--shapes", "0.5b", "--count", "1", "--tokenizer", str(tmp_path)]
    assert main(["gpu", *files, *options, "--save", str(tmp_path / "gpu")]) == 0
    name = "replay 0.5b bf16" if sets else "operations 0.5b bf16"
    assert name in capsys.readouterr().out
    answer = json.loads((tmp_path / "gpu.json").read_text())
    assert answer["failures"] == {}
    assert answer["sections"][name]
