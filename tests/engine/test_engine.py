"""What an engine decides once it knows its machine, and who runs in its loop."""

from types import SimpleNamespace
from typing import Any

import pytest

from engine.drafting.budget import StepCost
from engine.engine import alone
from engine.options import affordable_prompt


@pytest.mark.parametrize(
    ("ms_of_128_rows", "tokens"),
    [(1000.0, 1024), (310.0, 1024), (160.0, 1024), (150.0, 2048), (20.0, 8192), (1.0, 8192)],
)
def test_a_quarter_of_a_prompt_is_read_within_six_tenths_of_a_second(ms_of_128_rows, tokens):
    """But on a slow machine a prompt has 1024 tokens all the same: it is read once."""
    cost = StepCost({1: ms_of_128_rows / 10, 128: ms_of_128_rows})
    assert affordable_prompt(cost) == tokens


def test_one_alone_is_admitted_until_it_is_done():
    one: Any = SimpleNamespace(is_done=False)
    admit = alone(one)
    assert [admit(), admit()] == [[one], [one]]
    one.is_done = True
    assert admit() == []
