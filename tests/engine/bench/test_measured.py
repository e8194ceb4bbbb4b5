import json
from dataclasses import asdict, replace

import pytest
from msgspec import structs

from engine.bench.figures import speed_figures
from engine.bench.measured import OFF, WARM_UP, request_for, run_replay
from engine.bench.task_sets import load_replay_items
from engine.config import Lookahead, Sampling
from engine.request import CompletionRequest, FinishReason
from tests.support.replayed import FAST, SLOW, ScriptedEngine, replay_item, twice_as_fast

ITEM = replay_item("    return 1")
DECODING = CompletionRequest("", "")


def test_reads_the_items_of_a_replay_set(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text((json.dumps(asdict(ITEM)) + "\n") * 3)
    assert load_replay_items(path) == [ITEM] * 3
    assert load_replay_items(path, 2) == [ITEM] * 2


def test_asks_as_an_editor_would():
    request = request_for(ITEM, replace(DECODING, sampling=Sampling(temperature=0.8, seed=3)))
    around = (request.prefix, request.suffix, request.path)
    assert around == (ITEM.prefix, ITEM.suffix, ITEM.path)
    assert request.open_buffers == ITEM.open_buffers
    assert request.sampling.seed == 3


def test_runs_off_and_on_in_alternating_order_after_a_warm_up_that_is_no_item():
    engine = ScriptedEngine(twice_as_fast)
    decoding = replace(DECODING, lookahead=Lookahead.parse("coding"))
    run_replay(engine, [ITEM] * 4, decoding)
    assert engine.requests[0] == WARM_UP
    on = request_for(ITEM, decoding)
    off = replace(on, lookahead=OFF)
    assert engine.requests[1:] == [off, on, on, off, off, on, on, off]


def test_a_request_without_lookahead_is_decoded_once():
    engine = ScriptedEngine(twice_as_fast)
    runs = run_replay(engine, [ITEM] * 2, replace(DECODING, lookahead=OFF))
    assert len(engine.requests) == 1 + 2
    assert speed_figures(runs["completion"]).on_over_off == 1.0


def test_sums_up_by_kind():
    items = [ITEM, replace(ITEM, kind="edit"), replace(ITEM, kind="edit")]
    runs = run_replay(ScriptedEngine(twice_as_fast), items, DECODING)
    assert {kind: len(some) for kind, some in runs.items()} == {"completion": 1, "edit": 2}
    figures = speed_figures(runs["edit"])
    assert (figures.tokens_per_step, figures.identical) == (4.0, 1.0)
    assert figures.accepted_by_source == {"open_buffer": 12}


@pytest.mark.parametrize(
    "other",
    [
        structs.replace(FAST, token_ids=(1, 2)),
        structs.replace(FAST, text="other"),
        structs.replace(FAST, finish_reason=FinishReason.MAX_TOKENS),
    ],
    ids=["tokens", "text", "reason"],
)
def test_an_item_that_changed_with_lookahead_is_not_identical(other):
    engine = ScriptedEngine(lambda request: SLOW if request.lookahead == OFF else other)
    runs = run_replay(engine, [ITEM], DECODING)
    assert speed_figures(runs["completion"]).identical == 0.0
