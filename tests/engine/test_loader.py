"""What is decided once the machine is known."""

import pytest

from engine.drafting.budget import StepCost
from engine.engine import PromptSizes
from engine.loader import prompt_sizes


@pytest.mark.parametrize(
    ("ms_of_128_rows", "sizes"),
    [
        (1000.0, PromptSizes(1024, 1024)),
        (900.0, PromptSizes(2048, 1024)),
        (310.0, PromptSizes(2048, 1024)),
        (150.0, PromptSizes(2048, 2048)),
        (20.0, PromptSizes(8192, 8192)),
        (1.0, PromptSizes(8192, 8192)),
    ],
)
def test_a_first_prompt_is_read_in_seconds_and_a_larger_one_in_a_pause(ms_of_128_rows, sizes):
    """But on a slow machine a prompt has 1024 tokens all the same: it is read once."""
    cost = StepCost({1: ms_of_128_rows / 10, 128: ms_of_128_rows})
    assert prompt_sizes(cost) == sizes
