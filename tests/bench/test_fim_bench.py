"""Fill-in-the-middle tasks: reading and drawing them, and the scores of texts."""

import gzip
import json

import pytest

from engine.errors import InputError
from engine.request import CompletionRequest
from tests.bench import fim_bench
from tests.bench.__main__ import main
from tests.bench.fim_bench import fim_figures, run_fim
from tests.bench.published_fim import published_request, published_score
from tests.bench.scoring import edit_similarity, score
from tests.bench.tasks import FimTask, load_fim_tasks
from tests.support.byte_tokenizer import own_tokenizer
from tests.support.replayed import ScriptedEngine, result
from tests.support.tiny_models import save_model, tiny_model

LINE_ROW = {
    "name": "one",
    "language": "js",
    "prompt": "f(",
    "suffix": "\n)",
    "canonical_solution": "x",
    "tests": "",
}
BLOCK_ROW = {
    "task_id": "two",
    "entry_point": "f",
    "prompt": "def f(x):\n    ",
    "suffix": "\n",
    "canonical_solution": "return x + 1",
    "test": "def check(candidate):\n    assert candidate(1) == 2\n",
}

LINE = FimTask.from_row(LINE_ROW | {"canonical_solution": "  x + 1"})
BLOCK = FimTask.from_row(BLOCK_ROW)


def written(path, rows):
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_reads_both_published_forms(tmp_path):
    line, block = load_fim_tasks(written(tmp_path / "set.gz", [LINE_ROW, BLOCK_ROW]))
    assert (line.id, line.path, line.prefix, line.suffix) == ("one", "task.js", "f(", "\n)")
    assert (line.middle, line.check) == ("x", None)
    assert block.language == "py"
    assert block.check is not None
    assert block.program("PASS").startswith("def f(x):\n    PASS\n\ndef check(candidate)")
    assert block.program("PASS").endswith("check(f)\n")


def test_a_draw_is_always_the_same_and_a_larger_one_begins_with_it(tmp_path):
    path = written(tmp_path / "set.gz", [BLOCK_ROW | {"task_id": str(n)} for n in range(50)])
    few, more = load_fim_tasks(path, 5), load_fim_tasks(path, 10)
    assert few == load_fim_tasks(path, 5) == more[:5]
    assert [task.id for task in few] != ["0", "1", "2", "3", "4"]


def test_another_form_is_an_error_that_names_the_line(tmp_path):
    with pytest.raises(InputError, match="line 1 is no fill-in-the-middle task"):
        load_fim_tasks(written(tmp_path / "set.gz", [{"id": 1}]))


def test_what_is_written_is_scored_by_language():
    tasks = [FimTask.from_row(row) for row in (BLOCK_ROW, BLOCK_ROW, LINE_ROW)]
    engine = ScriptedEngine(lambda _request: result("return x + 1"))
    figures = fim_figures(run_fim(engine, tasks, CompletionRequest("", "")))
    python, other = figures["py"], figures["js"]
    assert (python.tasks, python.exact_match, python.pass_at_1) == (2, 1.0, 1.0)
    assert (other.tasks, other.exact_match, other.pass_at_1) == (1, 0.0, None)


def test_prints_one_object_with_scores(tmp_path, monkeypatch, capsys):
    engine = ScriptedEngine(lambda _request: result("ab"))
    monkeypatch.setattr(fim_bench, "load_engine", lambda *_: engine)
    path = str(written(tmp_path / "set.gz", [BLOCK_ROW]))
    assert main(["fim", path, "--layout", "psm", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["layout"] == "psm"
    assert answer["languages"]["py"]["pass_at_1"] == 0.0
    assert answer["tasks"][0]["edit_similarity"] == 0.0
    assert main(["fim", path]) == 0
    assert "edit similarity" in capsys.readouterr().out


def test_as_published_the_text_is_the_same_with_lookahead(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FOREGRAM_CACHE", str(tmp_path / "cache"))
    folder = save_model(tiny_model("qwen2", max_position_embeddings=4096), tmp_path / "model")
    path = str(written(tmp_path / "set.gz", [LINE_ROW, LINE_ROW]))
    options = ["--published", "--model", str(folder), "--dtype", "float32"]
    assert main(["fim", path, *options, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["languages"]["js"]
    assert (figures["tasks"], figures["speed"]["identical"]) == (2, 1.0)
    assert main(["fim", path, *options]) == 0
    assert "100.0%" in capsys.readouterr().out


def test_a_published_prompt_has_the_end_before_the_hole_and_the_beginning_behind_it():
    task = FimTask.from_row(LINE_ROW | {"prompt": "abc" * 1000, "suffix": "xyz" * 400})
    request = published_request(task, own_tokenizer(), CompletionRequest("", ""))
    before, behind = ("abc" * 1000)[-1472:], ("xyz" * 400)[:512]
    assert request.prefix == f"<|fim_prefix|>{before}<|fim_suffix|>{behind}<|fim_middle|>"
    assert request.is_raw
    assert request.stop.max_tokens == 64


@pytest.mark.parametrize(
    ("said", "is_exact"),
    [("  x + 1", True), ("\nx + 1\ny", True), (" \n x + 1", True), ("\n\nx + 1", False)],
)
def test_as_published_one_empty_line_may_come_first(said, is_exact):
    assert published_score(LINE, said).is_exact is is_exact


@pytest.mark.parametrize("said", ["x + 1", "\n\n   x + 1  \nmore", "  x + 1"])
def test_a_line_is_judged_by_the_first_that_is_not_empty(said):
    assert score(LINE, said).is_exact
    assert score(LINE, said).passed is None


@pytest.mark.parametrize(
    ("said", "is_exact", "passed"),
    [
        ("return x + 1", True, True),
        ("return 1 + x", False, True),
        ("return x", False, False),
        ("return x +", False, False),
        ("", False, False),
    ],
)
def test_a_block_is_judged_by_its_text_and_by_running_the_program(said, is_exact, passed):
    one = score(BLOCK, said)
    assert (one.is_exact, one.passed) == (is_exact, passed)


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("", "", 1.0),
        ("abc", "abc", 1.0),
        ("", "abc", 0.0),
        ("kitten", "sitting", 1 - 3 / 7),
        ("abcd", "bcd", 0.75),
    ],
)
def test_edit_similarity_counts_changed_characters(one, other, similarity):
    assert edit_similarity(one, other) == pytest.approx(similarity)
