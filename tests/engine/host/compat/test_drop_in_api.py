"""What is refused by name is refused in words that fit a JSON body."""

import pytest

from engine.errors import InputError
from engine.host.compat.drop_in_api import read_as
from engine.host.compat.openai_answer import StreamOptions


@pytest.mark.parametrize(
    ("name", "value", "neutral", "told"),
    [
        ("echo", True, (False,), "leave it out, or let it be false"),
        ("logprobs", 5, (0, 1), "leave it out, or let it be 0 or 1"),
        ("mode", "next", ("standard",), 'leave it out, or let it be "standard"'),
        ("logit_bias", {"5": 1}, (), "leave it out"),
    ],
)
def test_what_would_be_taken_is_told_as_json(name, value, neutral, told):
    with pytest.raises(InputError) as refused:
        read_as(StreamOptions, {name: value}, {name: neutral})
    assert str(refused.value) == f"{name} is not supported: {told}"
