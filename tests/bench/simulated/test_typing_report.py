"""The figures for people and for programs."""

import json
from io import StringIO

import pytest
from rich.console import Console

from tests.bench.simulated.screen import Suggestion
from tests.bench.simulated.sides import AssistedTrace, Effort
from tests.bench.simulated.typing_report import typing_json, typing_table
from tests.bench.simulated.typist import KeyPress, TypedTrace


def run(pressed, **effort):
    keys = tuple(KeyPress(0.2 * number, 0.0, "key", 1) for number in range(1, pressed + 1))
    shown = (Suggestion(0.5, 0.4, 0.5, "abcd", 4, 3, 0.1, 0.3),)
    typed = TypedTrace("a", (0.2,) * 10, keys, shown, ((0.5, 0.9),))
    return AssistedTrace(typed, Effort(empty={"blank": 2}, **effort))


def test_every_side_has_a_column():
    runs = {"foregram": [run(5, host_cpu_s=3.0)], "against": [run(10)]}
    output = StringIO()
    Console(file=output, width=200).print(typing_table(runs))
    lines = output.getvalue().replace("┃", "│").splitlines()
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    rows = {name: values for name, *values in cells}
    assert rows["figure"] == ["foregram", "against"]
    assert rows["keystrokes saved, all / median trace"] == ["50.0% / 50.0%", "0.0% / 0.0%"]
    assert rows["characters shown, wrong"] == ["4, 75.0%", "4, 75.0%"]
    assert rows["answered with nothing"] == ["blank 2", "blank 2"]


def test_programs_get_the_figures_their_ratios_and_every_trace():
    runs = {"foregram": [run(5)], "against": [run(8)], "llama.cpp": [run(10)]}
    answer = json.loads(json.dumps(typing_json(runs, seed=3), allow_nan=False))
    assert answer["seed"] == 3
    assert answer["ratios"]["against"]["keystrokes_saved"] == pytest.approx(2.5)
    assert answer["ratios"]["llama.cpp"]["keystrokes_saved"] is None
    (trace,) = answer["traces"]["foregram"]
    assert (trace["saved"], len(trace["keys"]), trace["suggestions"][0]["begun_s"]) == (0.5, 5, 0.3)
