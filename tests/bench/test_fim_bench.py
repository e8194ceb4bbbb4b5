import gzip
import json

import pytest

from engine.errors import InputError
from engine.request import CompletionRequest
from tests.bench.fim_bench import fim_figures, run_fim
from tests.bench.tasks import FimTask, load_fim_tasks
from tests.support.replayed import ScriptedEngine, result

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
    figures = fim_figures(run_fim(engine.complete, tasks, CompletionRequest("", "")))
    python, other = figures["py"], figures["js"]
    assert (python.tasks, python.exact_match, python.pass_at_1) == (2, 1.0, 1.0)
    assert (other.tasks, other.exact_match, other.pass_at_1) == (1, 0.0, None)
