"""Tasks whose answer is in another file, completed without and with open files."""

import json
from itertools import product

import pytest

from engine.errors import InputError
from engine.request import CompletionRequest, Snippet
from tests.bench.crossfile import ARMS, Retrieved, crossfile_figures, run_crossfile
from tests.bench.scoring import crossfile_score, first_statement
from tests.bench.tasks import CrossfileTask, load_crossfile_tasks
from tests.support.held_engine import HeldEngine

ROW = {
    "stratum": "cross_file",
    "kind": "member",
    "package_root": "shop-1",
    "path": "shop/cart.py",
    "prefix": "from shop.models import a\nx = a.",
    "target": "price(tax)",
    "suffix": "\n",
    "open_files": ["shop/orders.py", "shop/models.py"],
    "package": "shop",
    "definition_text": "# shop/models.py\nclass A:\n    def price(self, tax): ...\n",
}


def task(**changes) -> CrossfileTask:
    names = ("stratum", "kind", "path", "prefix", "target", "suffix")
    fields = {name: ROW[name] for name in names} | changes
    text = str(ROW["definition_text"])
    return CrossfileTask(id="1", open_buffers=(), definition_text=text, **fields)


@pytest.fixture
def set_path(tmp_path):
    folder = tmp_path / "trees" / "shop-1" / "shop"
    folder.mkdir(parents=True)
    for name in ("orders", "models"):
        (folder / f"{name}.py").write_text(f"# {name}\n")
    rows = [ROW | {"id": f"cross_file/{number}"} for number in range(9)]
    rows += [ROW | {"id": f"random_line/{n}", "stratum": "random_line"} for n in range(9)]
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_file_that_was_imported_last_is_the_most_related_one(set_path):
    tasks = load_crossfile_tasks(set_path, set_path.parent / "trees")
    assert [buffer.path for buffer in tasks[0].open_buffers] == ["shop/models.py", "shop/orders.py"]
    assert tasks[0].open_buffers[0].text == "# models\n"


def test_a_draw_takes_as_many_of_each_stratum_and_a_larger_one_begins_with_it(set_path):
    trees = set_path.parent / "trees"
    few, more = (load_crossfile_tasks(set_path, trees, count) for count in (2, 5))
    assert [one.stratum for one in few] == ["cross_file"] * 2 + ["random_line"] * 2
    assert few == more[:2] + more[5:7]


def test_bad_sets_are_refused_with_what_is_wrong(set_path, tmp_path):
    with pytest.raises(InputError, match=r"models.py cannot be read: .*; name the --trees"):
        load_crossfile_tasks(set_path, tmp_path / "elsewhere")
    for outside in ({"package_root": "/"}, {"path": "../a.py"}, {"open_files": ["a/../../b.py"]}):
        set_path.write_text(json.dumps(ROW | {"id": "1"} | outside))
        with pytest.raises(InputError, match=r"line 1 .* leads out of the trees"):
            load_crossfile_tasks(set_path, tmp_path / "trees")
    set_path.write_text("{}\n")
    with pytest.raises(InputError, match="line 1 is no cross-file task"):
        load_crossfile_tasks(set_path, tmp_path / "trees")


def test_a_statement_ends_at_the_line_end_where_no_bracket_is_open():
    assert first_statement("x = f(", "a,\n  b)\ny = 2\n") == "a,\n  b)"
    assert first_statement("x = ", "1\ny = 2\n") == "1"
    assert first_statement("x = f(", "a,\n") == "a,\n"


@pytest.mark.parametrize(
    ("output", "judged"),
    [
        ("price(tax)", (True, True)),
        ("price( tax )", (False, True)),
        ("price(tax)\nprint(x)\n", (True, True)),
        ("price(vat)", (False, False)),
    ],
)
def test_a_member_is_scored_by_its_text_and_its_names(output, judged):
    score = crossfile_score(task(), output)
    assert (score.is_exact, score.has_identifiers) == judged


def test_a_random_line_is_cut_at_its_end():
    wanted = task(stratum="random_line", prefix="x = f(", target="a,")
    assert crossfile_score(wanted, "a,\n  b)").is_exact
    assert crossfile_score(wanted, "a.").similarity == 0.5
    assert crossfile_score(task(target=""), "").similarity == 1.0


class Guessing(HeldEngine):
    """Writes the answer if it sees other files, and goes on until it is cancelled."""

    def completing(self, request, **how):
        known = request.open_buffers or request.repository
        self.words = ("price(tax)" if known else "cost(", "\n", "more\n")
        return (yield from super().completing(request, **how))


def guessed(tasks):
    decoding = CompletionRequest("", "")
    found = Retrieved((Snippet("shop/models.py", "def price(tax):\n"),), 3.0)
    return [
        run_crossfile(Guessing(), task, arm, decoding, lambda _task, _opened: found)
        for task, arm in product(tasks, ARMS)
    ]


def test_the_arms_are_compared_task_by_task_and_end_when_all_that_counts_is_written(set_path):
    tasks = load_crossfile_tasks(set_path, set_path.parent / "trees", 2)
    runs = guessed(tasks)
    assert len(runs) == 20
    assert [run.text for run in runs[:2]] == ["cost(\nmore\n", "price(tax)"]
    assert runs[1].result.text == "price(tax)\n"
    figures = crossfile_figures(runs)["cross_file"]
    assert (figures["none"].exact, figures["open_files"].exact) == (0.0, 1.0)
    assert (figures["open_files"].paired.gained, figures["open_files"].paired.lost) == (2, 0)
    assert [figures[arm].exact for arm in ("repository", "together", "oracle")] == [1.0] * 3
    assert (figures["repository"].retrieval_ms, figures["oracle"].retrieval_ms) == (3.0, 0.0)
    assert figures["open_files"].prompt_tokens == 100.0


def test_each_arm_is_forgotten_before_the_next_one():
    engine, retrieved = Guessing(), Retrieved((Snippet("a.py", "x\n"),))
    run_crossfile(engine, task(), "repository", CompletionRequest("", ""), lambda *_: retrieved)
    assert [one.paths for one in engine.forgotten] == [{"shop/cart.py", "a.py"}]
