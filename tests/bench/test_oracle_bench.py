"""Drafting alone, with the target as the model."""

import json

import pytest

from engine.bench.task_sets import ReplayItem
from engine.request import CompletionRequest
from tests.bench.__main__ import main
from tests.bench.oracle import Oracle, OracleItem
from tests.bench.oracle_bench import load_items
from tests.support.byte_tokenizer import byte_tokenizer, own_tokenizer
from tests.support.replayed import replay_item, write_replay_set

BODY = "    total = first + second\n    return total * 2\n"
HEADER = "<|file_sep|>"
SWEEP = (
    f"{HEADER}a.py\n{HEADER}original/a.py:1:2\nx = 1\ny = x\n"
    f"{HEADER}current/a.py:1:2\nz = 1\n<|cursor|>y = x\n{HEADER}updated/a.py:1:2\nz = 1\n"
)
ZETA = (
    "<|start_of_file|>\n<|editable_region_start|>\nz = 1<|user_cursor_is_here|>\ny = x\n"
    "<|editable_region_end|>\n```\n\n### Response:\n"
)
ZETA_2 = (
    "<[fim-suffix]>\n<[fim-prefix]><filename>a.py\n<<<<<<< CURRENT\nz = 1\ny<|user_cursor|> = x\n"
    "=======\n<[fim-middle]>"
)


@pytest.fixture(scope="module")
def oracle():
    return Oracle(own_tokenizer(), 64)


def item(body: str) -> OracleItem:
    one: ReplayItem = replay_item(body)
    request = CompletionRequest(one.prefix, one.suffix, open_buffers=one.open_buffers)
    return OracleItem("completion", request, one.target)


def test_a_body_that_a_buffer_holds_takes_few_steps(oracle):
    score = oracle.scores([item(BODY)])["completion"]
    assert score.items == 1
    assert score.tokens > 20
    assert score.steps <= 3
    assert score.accepted["open_buffer"] > 20
    # A step emits what it accepted and one more, the last perhaps nothing more.
    assert 0 <= score.steps + score.accepted.total() - score.tokens <= 1


def test_a_block_that_is_rewritten_takes_few_steps(oracle):
    request = CompletionRequest("Rewrite it:\n", "", is_raw=True)
    known = CompletionRequest("Rewrite it:\n", "", is_raw=True, copied=BODY)
    target = BODY.replace("total", "product")
    [without, copied] = (
        oracle.scores([OracleItem("edit", one, target)])["edit"].steps for one in (request, known)
    )
    assert copied < without / 2


def test_recorded_edits_are_read_with_their_blocks(tmp_path):
    recordings = {
        "sweep-next-edit-1.5B": [{"prompt": SWEEP, "completion": "y = z\n"}],
        "zeta": [{"prompt": ZETA, "completion": "<|editable_region_start|>\nz = 1\ny = z"}],
        "zeta-2": [{"prompt": ZETA_2, "completion": "z = 1\ny = z\n"}],
    }
    file = tmp_path / "recorded.jsonl"
    file.write_text(json.dumps({"recordings": recordings}) + "\n")
    found = load_items(file)
    assert [(one.kind, one.request.copied) for one in found] == [
        ("sweep", "y = x\n"),
        ("zeta", "<|editable_region_start|>\nz = 1\ny = x"),
        ("zeta-2", "z = 1\ny = x\n"),
    ]
    assert all(one.request.is_raw for one in found)


def test_figures_are_printed_by_kind(tmp_path, capsys):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    file = write_replay_set(tmp_path / "set.jsonl")
    options = ["--count", "4", "--tokenizer", str(tmp_path), "--json"]
    assert main(["oracle", str(file), *options]) == 0
    figures = json.loads(capsys.readouterr().out)["kinds"]
    assert {kind: one["items"] for kind, one in figures.items()} == {"completion": 3, "edit": 1}
