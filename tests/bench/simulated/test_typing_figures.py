"""The figures of typed traces, for people and for programs."""

import json
import math
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.bench.simulated.screen import Suggestion
from tests.bench.simulated.sides import AssistedTrace, Effort
from tests.bench.simulated.typing_figures import (
    saved_ratio,
    typing_figures,
    typing_json,
    typing_table,
    waits,
)
from tests.bench.simulated.typist import KeyPress, TypedTrace


def trace(keys, *, suggestions=(), visible=(), own=(0.1,) * 10):
    return TypedTrace("a", own, tuple(keys), tuple(suggestions), tuple(visible))


def key(at, kind="key", text="x"):
    return KeyPress(at, 0.0, kind, text)


def suggestion(at=1.0, key_at=0.9, gap_s=0.0, chars=10, wrong=0, begun_s=None):
    return Suggestion(at, key_at, gap_s, "", chars, wrong, 0.1, begun_s)


def test_all_keys_and_the_median_trace():
    runs = [AssistedTrace(trace([key(0.1)] * pressed), Effort()) for pressed in (10, 8, 3)]
    figures = typing_figures(runs)
    assert figures.keystrokes_saved == pytest.approx(0.3)
    assert figures.keystrokes_saved_p50 == pytest.approx(0.2)


def test_a_key_waits_until_ghost_text_stands_there_whatever_is_typed_meanwhile():
    typed = trace([key(0.0), key(1.0), key(2.0), key(3.0)], visible=[(0.5, 0.8), (1.25, 2.5)])
    assert list(waits(typed)) == [0.5, 0.25, 0.0]


def test_each_kind_of_moment_has_its_share_of_keys_with_ghost_text_soon():
    pressed = [
        key(0.5),
        key(1.0, text="\n    "),
        key(2.0, "line", "ab"),
        key(3.0, text=")"),
        key(4.0),
    ]
    typed = trace(pressed, visible=[(0.1, 0.4), (1.1, 1.9), (2.5, 4.0)])
    moments = typing_figures([AssistedTrace(typed, Effort())]).moments
    assert moments == {"arrival": 1, "other key": 0, "Enter": 1, "accept": 0, "closer": 1}


def test_flickers_are_counted_a_minute():
    typed = replace(trace([key(30.0)]), num_flickers=2)
    assert typing_figures([AssistedTrace(typed, Effort())]).flickers_per_minute == 4


def test_wrong_characters_are_a_share_of_those_shown():
    shown = [suggestion(chars=30, wrong=20), suggestion(chars=10, wrong=10)]
    figures = typing_figures([AssistedTrace(trace([key(1.0)], suggestions=shown), Effort())])
    assert (figures.shown_chars, figures.wrong_share) == (40, 0.75)


def test_text_from_memory_has_no_generation_to_wait_for():
    shown = [suggestion(begun_s=0.5), suggestion()]
    figures = typing_figures([AssistedTrace(trace([key(1.0)], suggestions=shown), Effort())])
    assert (figures.from_memory, figures.begun_to_shown_ms_p50) == (1, 500)


def test_tokens_are_counted_against_the_characters_that_were_taken():
    typed = trace([key(0.1), key(0.2, "word", "some"), key(0.3, "line", "line")])
    figures = typing_figures([AssistedTrace(typed, Effort(tokens=16))])
    assert (figures.accepts, figures.tokens_per_accepted_char) == ({"word": 1, "line": 1}, 2.0)


def test_nothing_taken_and_nothing_shown_is_no_number():
    figures = typing_figures([AssistedTrace(trace([key(0.1)]), Effort(tokens=16))])
    assert math.isnan(figures.tokens_per_accepted_char)
    assert math.isnan(figures.wrong_share)


def side(*pressed):
    return [AssistedTrace(trace([key(0.1)] * count), Effort()) for count in pressed]


def test_an_interval_is_as_wide_as_traces_differ():
    low, high = saved_ratio(side(1, 9, 1, 9, 5), side(5, 5, 9, 9, 5))
    assert low < 25 / 17 < high


def test_nothing_that_others_save_cannot_be_divided_by():
    assert saved_ratio(side(4, 6), side(10, 10)) == (math.inf, math.inf)


def run(pressed, **effort):
    keys = [key(0.2 * number) for number in range(1, pressed + 1)]
    typed = trace(keys, suggestions=[suggestion(chars=4, wrong=3, begun_s=0.3)])
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
