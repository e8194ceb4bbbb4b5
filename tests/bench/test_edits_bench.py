"""Edits generated in scenarios and in the functions of wheels, and answers that were recorded."""

import ast
import zipfile
from typing import Any

import pytest

from engine.request import CompletionRequest, Done, EditOutcome
from tests.bench.asked_edits import KINDS, asked_edits
from tests.bench.edit_items import Scenario
from tests.bench.edits_bench import edit_figures, run_edits, verdicts
from tests.bench.llama_cpp import Peer
from tests.support.replayed import SLOW, ScriptedEngine, twice_as_fast

BUFFER = "def area(size):\n    return width * height\n\n\nprint(area(2, 3))\n"
EXPECTED = BUFFER.replace("width * height", "size.width * size.height")
ROW: dict[str, Any] = {
    "id": "parameter",
    "meta": {"file": "shop.py", "row": "2", "col": "11"},
    "sections": {
        "buffer.txt": BUFFER,
        "history": "<|file|> shop.py\n<|old|>\ndef area(width, height):\n<|new|>\ndef area(size):\n",
        "expected": EXPECTED,
    },
    "recordings": {},
}
ZETA_2 = f"<[fim-prefix]><filename>shop.py\n<<<<<<< CURRENT\n<|user_cursor|>{BUFFER}=======\n<[fim-middle]>"
SOURCE = """\
def names(items, limit):
    found = []
    for one in items.values():
        if len(found) < limit:
            found.append("%s!" % one)
    return found * 77
"""


def scenario(**changes):
    return Scenario.of(ROW | changes)


RIGHT = EditOutcome(1, 2, ("    return size.width * size.height",), 0.9)


def outcome(*lines, probability=0.9):
    return EditOutcome(1, 2, lines, probability)


def test_a_scenario_asks_at_its_cursor_with_the_edits_before_it():
    [item] = scenario().items
    assert item.prefix == "def area(size):\n    return "
    assert item.prefix + item.suffix == BUFFER
    [edit] = item.task.history
    assert (edit.path, edit.line, edit.old, edit.new) == (
        "shop.py",
        0,
        ("def area(width, height):",),
        ("def area(size):",),
    )


def test_an_edit_is_judged_by_what_was_expected():
    [item] = scenario().items
    assert item.judged(RIGHT) == {"exact": True, "similarity": 1, "shown": True}
    half = outcome("    return size.width * height", probability=0.3)
    figures = item.judged(half)
    assert (figures["exact"], figures["shown"]) == (False, False)
    assert figures["similarity"] == pytest.approx(0.5)
    assert item.judged(EditOutcome(refusal="no_change"))["similarity"] == 0


def test_silence_is_right_where_nothing_is_expected():
    quiet = ROW["sections"] | {"expected": ""}
    items = scenario(sections=quiet, meta=ROW["meta"] | {"cursor-positions": "5:2"}).items
    assert [one.prefix.count("\n") for one in items] == [1, 4]
    assert items[0].judged(outcome("    return 1")) == {"quiet": False}
    assert items[0].judged(outcome("    return 1", probability=0.2)) == {"quiet": True}


@pytest.mark.parametrize(
    ("following", "told"),
    [
        pytest.param(None, "as answered", id="the last one"),
        pytest.param(EXPECTED, "applied", id="as we read it"),
        pytest.param(BUFFER.replace("2, 3", "4"), "differs", id="otherwise"),
    ],
)
def test_a_recorded_answer_is_compared_with_what_its_client_applied(following, told):
    prompts = [ZETA_2] if following is None else [ZETA_2, ZETA_2.replace(BUFFER, following)]
    some = [{"prompt": one, "completion": EXPECTED} for one in prompts]
    read = verdicts([scenario(recordings={"zeta-2": some})])["zeta-2"]
    assert next(iter(read)) == told


def test_a_recorded_answer_that_changes_nothing_is_refused():
    some = [{"prompt": ZETA_2, "completion": BUFFER}]
    assert verdicts([scenario(recordings={"zeta-2": some})]) == {
        "zeta-2": {"refused: no_change": 1}
    }


def test_places_in_wheels_are_always_the_same_and_of_different_functions(tmp_path):
    with zipfile.ZipFile(tmp_path / "shop-1.0-py3-none-any.whl", "w") as wheel:
        for name in ("one", "two", "two_again"):
            wheel.writestr(f"shop/{name}.py", f"\n\n{SOURCE.replace('names', name[:3])}\nx = 1\n")
    items = asked_edits(tmp_path)
    assert [one.id for one in items] == [one.id for one in asked_edits(tmp_path)]
    assert [(one.kind, one.task.first, one.task.end) for one in items] == [("type hints", 2, 8)] * 2
    lines = (items[0].prefix + items[0].suffix).split("\n")[2:8]
    done = (lines[0].replace("items, limit)", "items: dict, limit: int) -> list"), *lines[1:])
    assert items[0].judged(EditOutcome(2, 8, done)) == {"parses": True, "done": True}
    assert items[0].judged(EditOutcome(2, 8, done[:3])) == {"parses": False, "done": False}


def is_met(kind: str, answer: str) -> bool:
    function, new = (function_of(ast.parse(text)) for text in (SOURCE, answer))
    return next(KINDS[kind](function)).is_met(ast.parse(answer), new)


def function_of(module: ast.Module) -> ast.FunctionDef:
    [function] = (one for one in module.body if isinstance(one, ast.FunctionDef))
    return function


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("type hints", "items, limit)", "items: dict, limit: int) -> list"),
        ("rename", "found", "current_found"),
        ("docstring", "limit):\n", 'limit):\n    """Tell some names."""\n'),
        ("f-strings", '"%s!" % one', 'f"{one}!"'),
        ("None", "limit):\n", "limit):\n    if items is None:\n        return None\n"),
    ],
)
def test_a_request_is_met_by_what_it_asks_for_alone(kind, old, new):
    right = SOURCE.replace(old, new)
    assert is_met(kind, right)
    assert not is_met(kind, SOURCE)
    assert kind == "f-strings" or not is_met(kind, right.replace("* 77", "* 78"))


def test_a_constant_stands_above_the_function_in_place_of_a_number():
    inside = SOURCE.replace("77", "TIMES")
    assert is_met("constant", f"TIMES = 77\n\n\n{inside}")
    assert not is_met("constant", inside)


def test_peers_write_as_many_tokens_after_the_same_prompt():
    def answer(request):
        done = twice_as_fast(request)
        return Done(done.text, done.finish_reason, done.cost, done.token_ids, edit=RIGHT)

    asked = []

    def decode(ids, tokens):
        asked.append((bytes(ids).decode(), tokens))
        return SLOW.cost

    engine, wanted = ScriptedEngine(answer), CompletionRequest("", "")
    runs = [*run_edits(engine, scenario().items, wanted, {"peer": Peer(decode, "build")})]
    assert asked == [("def area(size):\n    return ", 8)]
    figures = edit_figures(runs)
    assert figures["judged"] == {"exact": 1, "similarity": 1, "shown": 1}
    assert figures["speeds"] == {name: {"total": 2, "median": 2} for name in ("off", "peer")}
    assert [one.edit for one in engine.requests[1:]] == [runs[0].item.task] * 2
