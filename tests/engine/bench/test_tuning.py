"""Settings beside the default: what is taken, what is not, and that texts stay."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from engine.bench.measured import OFF, WARM_UP
from engine.bench.tuning import (
    _DRAFTS,
    DEFAULT,
    NGRAMS,
    NUM_ITEMS,
    WINDOWS,
    Compared,
    TextChangedError,
    Tuning,
    Variant,
    other_guesses,
)
from engine.config import Lookahead
from engine.drafting.budget import StepCost
from engine.loader import load_engine
from engine.progress import Progress
from tests.support.held_engine import INFO
from tests.support.replayed import FAST, SLOW, ScriptedEngine, replay_item
from tests.support.tiny_models import save_model, tiny_model

ITEMS = [replace(replay_item("    return 1"), id=str(number)) for number in range(NUM_ITEMS)]
CODING = Lookahead.parse("coding")


class TunedEngine(ScriptedEngine):
    """Answers by its script, which is also told the rows of a step and the threads."""

    info = replace(INFO, device="cpu", dtype="int8", threads=2, context_len=2000)
    model: Any = None

    def __init__(self, script, threads):
        budget = SimpleNamespace(most_rows=128, cost=StepCost({1: 1.0, 128: 100.0}))
        self.learning: Any = SimpleNamespace(budget=budget)
        super().__init__(lambda request: script(request, budget.most_rows, threads))

    def forget(self, closed):
        pass


def tuned(monkeypatch, script, seconds=60.0, progress=None):
    """Run a tuning on four processors, where the size of a prompt changes nothing."""
    engines: dict[int | None, TunedEngine] = {}
    monkeypatch.setattr("engine.bench.tuning.Engine", lambda *_: engines[None])
    monkeypatch.setattr("os.cpu_count", lambda: 4)

    def load(threads):
        return engines.setdefault(threads, TunedEngine(script, threads))

    tuning = Tuning(load, ITEMS, seconds, progress or Progress())
    tuning.run()
    return tuning


def test_what_is_faster_on_insertions_that_did_not_choose_it_is_taken(monkeypatch):
    seen = []

    def script(request, *_):
        seen.append(request)
        return FAST if request.lookahead == CODING else SLOW

    tuning = tuned(monkeypatch, script)
    assert tuning.best == Variant(lookahead="coding")
    [final] = [one for one in tuning.compared if one.is_better]
    assert (final.value, final.speed, len(final.ratios)) == ("coding", 2.0, NUM_ITEMS - 6)
    assert seen[0] == WARM_UP


def test_where_only_the_insertions_that_chose_it_were_faster_nothing_is_taken(monkeypatch):
    runs = []

    def script(request, *_):
        runs.append(request.lookahead)
        is_early = runs.count(CODING) <= 6
        return FAST if request.lookahead == CODING and is_early else SLOW

    tuning = tuned(monkeypatch, script)
    assert tuning.best == DEFAULT
    assert [one.value for one in tuning.compared if one.is_confirmed] == ["coding"]


def test_a_gain_within_the_noise_is_not_taken(monkeypatch):
    times = iter(range(10_000))

    def script(request, *_):
        if request.lookahead != CODING:
            return SLOW
        ms = 20.0 if next(times) % 2 else 200.0
        return structs.replace(FAST, cost=structs.replace(FAST.cost, decode_ms=ms))

    assert tuned(monkeypatch, script).best == DEFAULT


def test_the_number_of_threads_counts_reading_and_is_kept_for_what_follows(monkeypatch):
    read = structs.replace(SLOW, cost=structs.replace(SLOW.cost, prefill_ms=10.0))
    read_slowly = structs.replace(SLOW, cost=structs.replace(SLOW.cost, prefill_ms=100.0))
    tuning = tuned(monkeypatch, lambda *told: read if told[-1] == 4 else read_slowly)
    assert tuning.best == Variant(threads=4)
    assert {one.value for one in tuning.compared if one.axis == "threads"} == {1, 4}


def test_a_row_limit_that_is_faster_is_shown_and_not_taken(monkeypatch):
    tuning = tuned(monkeypatch, lambda _, most_rows, __: FAST if most_rows == 16 else SLOW)
    assert [(one.axis, one.value) for one in tuning.compared if one.is_better] == [("rows", 16)]
    assert tuning.best == DEFAULT


def test_a_setting_that_changes_the_text_is_an_error(monkeypatch):
    other = structs.replace(SLOW, token_ids=(1, 2))
    with pytest.raises(TextChangedError, match="lookahead off changed the text of 0"):
        tuned(monkeypatch, lambda request, *_: other if request.lookahead == OFF else SLOW)


def test_no_insertion_begins_once_the_time_is_over(monkeypatch):
    clock = iter(range(10_000))  # each look at it takes a second
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    tuning = tuned(monkeypatch, lambda *_: SLOW, seconds=18.0)
    assert 0 < sum(len(one.ratios) for one in tuning.compared) < 40
    assert next(clock) < 25


def test_what_there_was_no_time_to_confirm_is_not_taken_and_told(monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    tuning = tuned(monkeypatch, lambda *told: FAST if told[-1] == 4 else SLOW, seconds=100.0)
    assert [one.value for one in tuning.compared if one.is_open] == [4]
    assert tuning.best == DEFAULT


def test_the_speeds_of_fixed_lookahead_are_a_surface_of_w_and_n(monkeypatch):
    fast = Lookahead("fixed", 3, 5, 3)
    tuning = tuned(monkeypatch, lambda request, *_: FAST if request.lookahead == fast else SLOW)
    assert {(w, n) for w in WINDOWS for n in NGRAMS} <= set(tuning.surface)
    assert {place for place, one in tuning.surface.items() if one.speed > 1} == {(3, 5)}
    assert tuning.best == Variant(lookahead="3,5,3")
    assert {"3,5,1", "3,5,6"} <= {one.value for one in tuning.compared}


def test_of_a_recipe_g_is_halved_and_doubled():
    assert list(other_guesses("tensorrt")) == ["4,3,2", "4,3,8"]
    assert list(other_guesses("1,5,1")) == ["1,5,2"]


def test_where_sums_are_not_exact_a_near_tie_is_counted_and_the_rest_goes_on(monkeypatch):
    info = replace(TunedEngine.info, dtype="float32")
    monkeypatch.setattr(TunedEngine, "info", info)
    other = structs.replace(FAST, token_ids=(1, 2))
    runs = []

    def script(request, *_):
        runs.append(request.lookahead)
        is_near_tie = runs.count(CODING) == 1
        return SLOW if request.lookahead != CODING else other if is_near_tie else FAST

    tuning = tuned(monkeypatch, script)
    assert tuning.best == Variant(lookahead="coding")
    assert [(one.value, one.num_changed) for one in tuning.compared if one.num_changed] == [
        ("coding", 1)
    ]


def test_no_prompt_is_tried_that_leaves_less_than_half_of_the_context(monkeypatch):
    tuning = tuned(monkeypatch, lambda *_: SLOW)
    assert {one.value for one in tuning.compared if one.axis == "prompt_tokens"} == {1000}


def test_two_items_have_much_more_noise_than_six():
    ratios = [1.0, 1.1]
    two, six = (
        Compared("rows", DEFAULT, ratios=ratios),
        Compared("rows", DEFAULT, ratios=3 * ratios),
    )
    assert two.noise > 5 * six.noise


def test_the_seconds_shown_are_those_that_passed(monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 4)
    shown = []

    class Counted(Progress):
        def advance(self, amount):
            shown.append(amount)

    tuned(monkeypatch, lambda *_: SLOW, progress=Counted())
    assert next(clock) / 4 - 2 < sum(shown) <= next(clock) / 4


@pytest.mark.usefixtures("one_thread")
def test_between_two_settings_drafts_are_forgotten_and_the_prompt_stays(tmp_path):
    model = save_model(tiny_model("qwen2"), tmp_path / "model")
    engine = load_engine(tmp_path / "cache", str(model), threads=1)
    first = engine.complete(WARM_UP)
    engine.forget(_DRAFTS)
    again = engine.complete(WARM_UP)
    assert again.cost.reused_tokens == first.cost.prompt_tokens - 1
    assert again.cost.steps == first.cost.steps
    assert engine.complete(WARM_UP).cost.steps < first.cost.steps
