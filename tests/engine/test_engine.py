"""What an engine decides once it knows its machine."""

import pytest

from engine.decoding.budget import StepCost
from engine.engine import affordable_prompt


@pytest.mark.parametrize(
    ("ms_of_128_rows", "tokens"),
    [(1000.0, 512), (128.0, 512), (120.0, 1024), (20.0, 4096), (1.0, 8192)],
)
def test_a_prompt_has_as_many_tokens_as_the_machine_reads_in_a_second(ms_of_128_rows, tokens):
    cost = StepCost({1: ms_of_128_rows / 10, 128: ms_of_128_rows})
    assert affordable_prompt(cost) == tokens
