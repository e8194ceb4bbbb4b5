"""What is decided once the machine is known."""

import pytest

from engine.drafting.budget import StepCost
from engine.loader import affordable_prompt


@pytest.mark.parametrize(
    ("ms_of_128_rows", "tokens"),
    [(1000.0, 1024), (310.0, 1024), (160.0, 1024), (150.0, 2048), (20.0, 8192), (1.0, 8192)],
)
def test_a_quarter_of_a_prompt_is_read_within_six_tenths_of_a_second(ms_of_128_rows, tokens):
    """But on a slow machine a prompt has 1024 tokens all the same: it is read once."""
    cost = StepCost({1: ms_of_128_rows / 10, 128: ms_of_128_rows})
    assert affordable_prompt(cost) == tokens
