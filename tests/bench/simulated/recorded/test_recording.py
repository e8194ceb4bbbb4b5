"""What is recorded of a model's text."""

from dataclasses import replace

import pytest

from engine.bench.measured import OFF
from tests.bench.simulated.recorded.recording import record, recorded, request_at
from tests.bench.simulated.traces import Trace
from tests.support.tiny_models import tiny_engine

TRACE = Trace("shop", "shop.py", "def pay(price):", "\n    ", "return price", "\n", ())


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return tiny_engine(tmp_path_factory.mktemp("engine"))


def test_the_recorded_tokens_are_the_models_text(engine):
    one = record(engine, TRACE, 6)
    alone = engine.complete(replace(request_at(TRACE, 6), lookahead=OFF))
    assert one.text
    assert alone.text.startswith(one.text)
    steps = [token.step for token in one.tokens]
    assert steps == sorted(steps)
    assert 1 <= steps[0] <= steps[-1] <= one.cost.steps


def test_positions_are_recorded_in_order_from_the_first(engine):
    places = [one.position for one in recorded(engine, TRACE)]
    assert places[0] == 0
    assert places == sorted(set(places))
